# Completion of amux for bash. Made by `make completions`; do not edit.
#
# Options are written as --flag, --name= (any value), --name=this|that, --name=@what-amux-is-asked-for.

_amux_known() { # sets what may follow a command
    commands='' options='' argument=''
    case $1 in
    '')
        commands='agents cost schema sessions'
        options='--demo --help --home=@directory --install-completion=bash|zsh|fish --no-cache --no-color --verbose --version -h -v'
        ;;
    'agents')
        options='--demo --help --home=@directory --json --no-cache --no-color --verbose -h -v'
        ;;
    'cost')
        commands='report'
        options='--demo --help --home=@directory --no-cache --no-color --verbose -h -v'
        ;;
    'cost report')
        options='--agent=@agents --chart --cost-mode=auto|native|estimate --csv --demo --group-by=agent|model|day|week|month|tag|project|session --help --home=@directory --json --limit= --model=@models --no-cache --no-color --since= --sort=key|cost|tokens|calls --tag=@tags --timezone= --until= --verbose -h -v'
        ;;
    'schema')
        options='--demo --help --home=@directory --json --no-cache --no-color --verbose -h -v'
        argument='session|summary|hit|cost|diff|agent|launch|error'
        ;;
    'sessions')
        commands='diff export list search show'
        options='--demo --help --home=@directory --no-cache --no-color --verbose -h -v'
        ;;
    'sessions diff')
        options='--demo --help --home=@directory --json --no-cache --no-color --stat --verbose -h -v'
        argument='@ids,ids'
        ;;
    'sessions export')
        options='--all --cwd=@directory --demo --force --format=json|jsonl|markdown|html|parquet --help --here --home=@directory --model=@models --no-cache --no-color --output=@file --raw --redact --since= --subagents --tag=@tags --until= --verbose -h -o=@file -v'
        argument='@sessions'
        ;;
    'sessions list')
        options='--asc --cwd=@directory --demo --help --here --home=@directory --ids-from=@file --json --limit= --model=@models --no-archived --no-cache --no-color --since= --sort=date|cost|turns --subagents --tag=@tags --tree --until= --verbose -h -v'
        argument='@agents'
        ;;
    'sessions search')
        options='--agent=@agents --cwd=@directory --demo --help --home=@directory --json --limit= --model=@models --no-cache --no-color --regex --role=user|assistant|tool|thinking|title --since= --sort=relevance|date|cost --tag=@tags --until= --verbose -h -v'
        ;;
    'sessions show')
        options='--demo --format=markdown|json|jsonl --head= --help --home=@directory --json --no-cache --no-color --raw --redact --tail= --thinking --tools=full|short|none --verbose -h -v'
        argument='@sessions'
        ;;
    esac
}

_amux() {
    local IFS=$' \t\n' current word value command='' ended='' asking=''
    local commands options argument
    local -a words=() given=() where=()
    _amux_split
    _amux_known ''
    for word in "${words[@]:1}"; do
        if [[ $asking ]]; then
            [[ $asking == --home ]] && where=(--home "$word")
            asking=''
        elif [[ $ended || $word != -?* ]]; then
            if [[ ! $ended && " $commands " == *" $word "* ]]; then
                command+=${command:+ }$word
                _amux_known "$command"
            else
                given+=("$word")
            fi
        elif [[ $word == -- ]]; then
            ended=1
        elif [[ $word == --demo ]]; then
            where=(--demo)
        elif [[ $word == --home=* ]]; then
            where=(--home "${word#*=}")
        elif _amux_value "$word"; then
            asking=$word
        fi
    done

    local unseen=${current%"$2"} typed=$current before=''
    if [[ $asking ]]; then
        given=()
        _amux_value "$asking"
        _amux_offer "$value"
    elif [[ $ended ]]; then
        return
    elif [[ $current == --*=* ]]; then
        given=() before=${current%%=*}= typed=${current#*=}
        _amux_value "${current%%=*}" && _amux_offer "$value"
    elif [[ $current == -* ]]; then
        local names=''
        for word in $options; do names+="${names:+|}${word%%=*}"; done
        _amux_offer "$names"
    elif [[ $commands ]]; then
        [[ ${given[*]} ]] || _amux_offer "${commands// /|}"
    else
        _amux_offer "$argument"
    fi
}

# The words before the cursor. bash splits them at every : and =, which stand inside of ids and options.
_amux_split() {
    local rest=${COMP_LINE:0:COMP_POINT} trimmed i
    for ((i = 0; i <= COMP_CWORD; i++)); do
        trimmed=${rest#"${rest%%[![:space:]]*}"}
        word=${COMP_WORDS[i]}
        ((i == COMP_CWORD)) && word=$trimmed
        if ((i > 0)) && [[ $trimmed && $trimmed == "$rest" ]]; then
            words[${#words[@]} - 1]+=$word
        else
            words+=("$word")
        fi
        rest=${trimmed#"$word"}
    done
    current=${words[${#words[@]} - 1]}
    unset "words[${#words[@]} - 1]"
}

_amux_value() { # sets what the value of an option may be; fails where it takes none
    local option
    for option in $options; do
        if [[ $option == "$1="* ]]; then
            value=${option#*=}
            return 0
        fi
    done
    return 1
}

_amux_offer() { # puts what begins as typed into COMPREPLY
    local -a found=()
    case $1 in
    '') ;;
    @file) compopt -o default 2>/dev/null ;;
    @directory) compopt -o dirnames 2>/dev/null ;;
    @*) _amux_ask "${1#@}" ;;
    *)
        local IFS='|'
        for word in $1; do
            [[ $word == "$typed"* ]] && found+=("$word")
        done
        ;;
    esac
    [[ ${found[*]} ]] && _amux_reply
}

_amux_ask() { # lines of value, tab, description: split at their ends, otherwise taken as they are
    [[ $typed == *[\"\'\\\`\$]* ]] && return
    local IFS=$'\n' globbing=''
    [[ $- == *f* ]] || globbing=1
    set -f
    found=($(command amux --complete "${where[@]}" "$1" "${given[@]}" "$typed" 2>/dev/null))
    [[ $globbing ]] && set +f
    compopt -o nosort 2>/dev/null
}

_amux_reply() {
    local line text
    for line in "${found[@]}"; do
        value=${line%%$'\t'*} text=''
        [[ $line == *$'\t'?* ]] && text=${line#*$'\t'}
        [[ $value == *[!A-Za-z0-9_.:/@=+,-]* ]] && printf -v value %q "$value"
        value=$before$value
        # Descriptions only where bash lists: 63 is the second Tab, 33 and 64 list at the first.
        if [[ $text && ${#found[@]} -gt 1 && $COMP_TYPE == @(63|33|64) ]]; then
            text="  $text"
            value+=${text:0:$((${COLUMNS:-80} - ${#value} - 1 > 0 ? ${COLUMNS:-80} - ${#value} - 1 : 0))}
        fi
        COMPREPLY+=("${value#"$unseen"}")
    done
}

complete -F _amux amux
