# Completion of amux for bash. Made by `make completions`; do not edit.
#
# Options are written as --flag, --name= (any value), --name=this|that, --name=@what-amux-is-asked-for.

_amux_known() { # sets what may follow a command
    commands='' options='' argument=''
    local everywhere='--home=@directory --demo --no-cache --no-color -v --verbose -h --help'
    case $1 in
    '')
        commands='agents cost schema sessions'
        options="$everywhere --version --install-completion=bash|zsh|fish"
        ;;
    'agents')
        options="$everywhere --json"
        ;;
    'cost')
        commands='report'
        options="$everywhere"
        ;;
    'cost report')
        options="$everywhere --agent=@agents --since=today|yesterday|7d|30d --until=today|yesterday|7d|30d --model=@models --tag=@tags --group-by=@groups --cost-mode=auto|native|estimate --timezone=@zones --sort=key|cost|tokens|calls --limit= --chart --csv --json"
        ;;
    'schema')
        options="$everywhere --json"
        argument='session|summary|hit|cost|diff|stats|agent|launch|error'
        ;;
    'sessions')
        commands='diff export fork list resume search show tag'
        options="$everywhere"
        ;;
    'sessions diff')
        options="$everywhere --stat --json"
        argument='@ids,ids'
        ;;
    'sessions export')
        options="$everywhere --format=json|jsonl|markdown|html|parquet -o=@file --output=@file --force --redact --raw --all --since=today|yesterday|7d|30d --until=today|yesterday|7d|30d --model=@models --tag=@tags --cwd=@directory --here --subagents --json"
        argument='@sessions'
        ;;
    'sessions fork')
        options="$everywhere --last --cwd=@directory --model=@models --tag=@tags --in=@agents -y --yes --print --json"
        argument='@sessions'
        ;;
    'sessions list')
        options="$everywhere --since=today|yesterday|7d|30d --until=today|yesterday|7d|30d --model=@models --tag=@tags --cwd=@directory --here --limit= --sort=date|cost|turns --asc --subagents --tree --no-archived --ids-from=@file --json"
        argument='@agents'
        ;;
    'sessions resume')
        options="$everywhere --last --cwd=@directory --model=@models --tag=@tags --in=@agents -y --yes --print --json"
        argument='@sessions'
        ;;
    'sessions search')
        options="$everywhere --agent=@agents --since=today|yesterday|7d|30d --until=today|yesterday|7d|30d --model=@models --tag=@tags --cwd=@directory --role=user|assistant|tool|thinking|title --limit= --sort=relevance|date|cost --regex --json"
        ;;
    'sessions show')
        options="$everywhere --format=markdown|json|jsonl --tools=full|short|none --thinking --head= --tail= --raw --redact --json"
        argument='@sessions'
        ;;
    'sessions tag')
        options="$everywhere --remove --json"
        argument='@sessions,tags+'
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
    local -a found=() said=()
    case $1 in
    '') return ;;
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
    found=("${found[@]/#/$before}")
    COMPREPLY=("${found[@]#"$unseen"}")
    _amux_describe
}

# What amux knows: lines of value, tab, description, which are split at their ends and otherwise taken as they are.
_amux_ask() {
    [[ $typed == *[\"\'\\\`\$]* ]] && return
    local IFS=$'\n' globbing='' i
    [[ $- == *f* ]] || globbing=1
    set -f
    found=($(command amux --complete "${where[@]}" "$1" "${given[@]}" "$typed" 2>/dev/null))
    [[ $globbing ]] && set +f
    compopt -o nosort 2>/dev/null
    said=("${found[@]#*$'\t'}")
    found=("${found[@]%%$'\t'*}")
    IFS=:
    if [[ ${found[*]} == *[!A-Za-z0-9_.:/@=+,-]* ]]; then
        for i in "${!found[@]}"; do
            printf -v value %q "${found[i]}"
            found[i]=$value
        done
    fi
}

# Descriptions are for reading only, so they are added where bash lists: 63 is the second Tab, 33 and 64 list at the first.
_amux_describe() {
    [[ ${#said[@]} -gt 1 && $COMP_TYPE =~ ^(63|33|64)$ ]] || return
    local i room
    for i in "${!said[@]}"; do
        room=$((${COLUMNS:-80} - ${#COMPREPLY[i]} - 3))
        [[ ${said[i]} && $room -gt 0 ]] && COMPREPLY[i]+="  ${said[i]:0:room}"
    done
}

complete -F _amux amux
