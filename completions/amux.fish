# Completion of amux for fish. Made by `make completions`; do not edit.

set -g __amux_commands ' agents' ' cost' ' cost report' ' schema' ' sessions' ' sessions diff' ' sessions export' ' sessions fork' ' sessions list' ' sessions resume' ' sessions search' ' sessions show' ' sessions tag'
set -g __amux_valued --agent --cost-mode --cwd --format --group-by --head --home --ids-from --in --install-completion --limit --model --output --role --since --sort --tag --tail --timezone --tools --until -o

# Sets what the words before the cursor say: the command, its arguments so far, and where amux reads.
function __amux_walk
    set -g __amux_command
    set -g __amux_given
    set -g __amux_where
    set -g __amux_ended
    set -l asking
    for word in (commandline -opc)[2..]
        if set -q asking[1]
            test $asking = --home; and set __amux_where --home $word
            set asking
        else if set -q __amux_ended[1]; or not string match -q -- '-?*' $word
            if not set -q __amux_ended[1]; and contains -- "$__amux_command $word" $__amux_commands
                set __amux_command "$__amux_command $word"
            else
                set -a __amux_given $word
            end
        else if test $word = --
            set __amux_ended yes
        else if test $word = --demo
            set __amux_where --demo
        else if string match -q -- '--home=*' $word
            set __amux_where --home (string replace -- --home= '' $word)
        else if contains -- $word $__amux_valued
            set asking $word
        end
    end
end

function __amux_at # whether a command's own options and arguments may follow
    __amux_walk
    test "$__amux_command" = "$argv[1]"; and not set -q __amux_ended[1]
end

function __amux_awaits # whether a command's commands may follow
    __amux_at $argv[1]; and not set -q __amux_given[1]
end

# What amux knows: lines of value, tab, description, which fish takes as they are.
function __amux_ask
    __amux_walk
    set -l typed (commandline -ct | string replace -r -- '^--[^=]*=' '')
    command amux --complete $__amux_where $argv "$typed" 2>/dev/null
end

function __amux_argument
    __amux_walk
    __amux_ask $argv $__amux_given
end

complete -c amux -f
complete -c amux -l home -x -a '(__fish_complete_directories)' -d 'Read this directory as if it were your home (AMUX_HOME).'
complete -c amux -l demo -d 'Read the sample sessions that come with amux.'
complete -c amux -l no-cache -d 'Answer from the files alone.'
complete -c amux -l no-color -d 'No colour, as with NO_COLOR=1.'
complete -c amux -s v -l verbose -d 'Say which sessions could not be read, and why.'
complete -c amux -s h -l help -d 'Say what there is and stop.'
complete -c amux -n '__amux_awaits ""' -a agents -d 'What was found of each agent, and where.'
complete -c amux -n '__amux_awaits ""' -a cost -d 'What the calls of the models cost.'
complete -c amux -n '__amux_awaits ""' -a schema -d 'JSON Schema of what --json prints.'
complete -c amux -n '__amux_awaits ""' -a sessions -d 'List, read, search and resume sessions.'
complete -c amux -n '__amux_at ""' -l version -d 'Say the version and stop.'
complete -c amux -n '__amux_at ""' -l install-completion -x -a 'bash zsh fish' -d 'Let a shell complete amux\'s words, yours if none is named, and stop.'
complete -c amux -n '__amux_at " agents"' -l json -d 'Print JSON.'
complete -c amux -n '__amux_awaits " cost"' -a report -d 'Tokens and money, each call once.'
complete -c amux -n '__amux_at " cost report"' -l agent -x -a '(__amux_ask agents)' -d 'Only this agent; may be repeated.'
complete -c amux -n '__amux_at " cost report"' -l since -x -a 'today yesterday 7d 30d' -d 'From this date on: 2026-11-18, 7d, 2w, today.'
complete -c amux -n '__amux_at " cost report"' -l until -x -a 'today yesterday 7d 30d' -d 'Up to this date; a day means the whole day.'
complete -c amux -n '__amux_at " cost report"' -l model -x -a '(__amux_ask models)' -d 'Only models with this in their id.'
complete -c amux -n '__amux_at " cost report"' -l tag -x -a '(__amux_ask tags)' -d 'Only with this tag; repeated: any of them.'
complete -c amux -n '__amux_at " cost report"' -l group-by -x -a '(__amux_ask groups)' -d 'agent, model, day, week, month, tag, project, session; several with commas.'
complete -c amux -n '__amux_at " cost report"' -l cost-mode -x -a 'auto native estimate' -d 'auto: what was recorded, else an estimate; native: only recorded; estimate: all estimated.'
complete -c amux -n '__amux_at " cost report"' -l timezone -x -a '(__amux_ask zones)' -d 'Days of this zone, Europe/Berlin say.'
complete -c amux -n '__amux_at " cost report"' -l sort -x -a 'key cost tokens calls' -d 'What comes first.'
complete -c amux -n '__amux_at " cost report"' -l limit -x -d 'At most so many; 0 means all.'
complete -c amux -n '__amux_at " cost report"' -l chart -d 'Bars over time, stacked by agent or model.'
complete -c amux -n '__amux_at " cost report"' -l csv -d 'Print CSV.'
complete -c amux -n '__amux_at " cost report"' -l json -d 'Print JSON.'
complete -c amux -n '__amux_at " schema"' -l json -d 'Print JSON.'
complete -c amux -n '__amux_awaits " schema"' -a 'session summary hit cost diff stats agent launch error'
complete -c amux -n '__amux_awaits " sessions"' -a diff -d 'What differs between two sessions.'
complete -c amux -n '__amux_awaits " sessions"' -a export -d 'Write sessions to files, to keep or share.'
complete -c amux -n '__amux_awaits " sessions"' -a fork -d 'Go on from a session in a new one.'
complete -c amux -n '__amux_awaits " sessions"' -a list -d 'The sessions, newest first.'
complete -c amux -n '__amux_awaits " sessions"' -a resume -d 'Go on with a session.'
complete -c amux -n '__amux_awaits " sessions"' -a search -d 'Sessions in which all the words occur.'
complete -c amux -n '__amux_awaits " sessions"' -a show -d 'One session, from first prompt to last answer.'
complete -c amux -n '__amux_awaits " sessions"' -a tag -d 'Tag a session with words of your own.'
complete -c amux -n '__amux_at " sessions diff"' -l stat -d 'Only the counts.'
complete -c amux -n '__amux_at " sessions diff"' -l json -d 'Print JSON.'
complete -c amux -n '__amux_at " sessions diff"' -k -a '(__amux_argument ids,ids)'
complete -c amux -n '__amux_at " sessions export"' -l format -x -a 'json jsonl markdown html parquet' -d 'What to write.'
complete -c amux -n '__amux_at " sessions export"' -s o -l output -r -F -d 'A file, or with --all a directory.'
complete -c amux -n '__amux_at " sessions export"' -l force -d 'Overwrite what is there.'
complete -c amux -n '__amux_at " sessions export"' -l redact -d 'Without secrets, e-mail addresses and your user name.'
complete -c amux -n '__amux_at " sessions export"' -l raw -d 'With the agent\'s own records.'
complete -c amux -n '__amux_at " sessions export"' -l all -d 'Every session, one file each; list\'s filters apply.'
complete -c amux -n '__amux_at " sessions export"' -l since -x -a 'today yesterday 7d 30d' -d 'From this date on: 2026-11-18, 7d, 2w, today.'
complete -c amux -n '__amux_at " sessions export"' -l until -x -a 'today yesterday 7d 30d' -d 'Up to this date; a day means the whole day.'
complete -c amux -n '__amux_at " sessions export"' -l model -x -a '(__amux_ask models)' -d 'Only models with this in their id.'
complete -c amux -n '__amux_at " sessions export"' -l tag -x -a '(__amux_ask tags)' -d 'Only with this tag; repeated: any of them.'
complete -c amux -n '__amux_at " sessions export"' -l cwd -x -a '(__fish_complete_directories)' -d 'Only this directory and what is below it.'
complete -c amux -n '__amux_at " sessions export"' -l here -d 'Only this git repository and its worktrees, else this directory.'
complete -c amux -n '__amux_at " sessions export"' -l subagents -d 'Sub-agents too.'
complete -c amux -n '__amux_at " sessions export"' -l json -d 'The same as --format json.'
complete -c amux -n '__amux_at " sessions export"' -k -a '(__amux_argument sessions)'
complete -c amux -n '__amux_at " sessions fork"' -l last -d 'The newest session, of AGENT if one is given.'
complete -c amux -n '__amux_at " sessions fork"' -l cwd -x -a '(__fish_complete_directories)' -d 'Start here instead of where it ran.'
complete -c amux -n '__amux_at " sessions fork"' -l model -x -a '(__amux_ask models)' -d 'With this model, as the agent calls it.'
complete -c amux -n '__amux_at " sessions fork"' -l tag -x -a '(__amux_ask tags)' -d 'Tag the session; may be repeated.'
complete -c amux -n '__amux_at " sessions fork"' -l in -x -a '(__amux_ask agents)' -d 'In a new session of this agent, with a brief of the old one.'
complete -c amux -n '__amux_at " sessions fork"' -s y -l yes -d 'Ask nothing.'
complete -c amux -n '__amux_at " sessions fork"' -l print -d 'Print the command and start nothing.'
complete -c amux -n '__amux_at " sessions fork"' -l json -d 'Print JSON.'
complete -c amux -n '__amux_at " sessions fork"' -k -a '(__amux_argument sessions)'
complete -c amux -n '__amux_at " sessions list"' -l since -x -a 'today yesterday 7d 30d' -d 'From this date on: 2026-11-18, 7d, 2w, today.'
complete -c amux -n '__amux_at " sessions list"' -l until -x -a 'today yesterday 7d 30d' -d 'Up to this date; a day means the whole day.'
complete -c amux -n '__amux_at " sessions list"' -l model -x -a '(__amux_ask models)' -d 'Only models with this in their id.'
complete -c amux -n '__amux_at " sessions list"' -l tag -x -a '(__amux_ask tags)' -d 'Only with this tag; repeated: any of them.'
complete -c amux -n '__amux_at " sessions list"' -l cwd -x -a '(__fish_complete_directories)' -d 'Only this directory and what is below it.'
complete -c amux -n '__amux_at " sessions list"' -l here -d 'Only this git repository and its worktrees, else this directory.'
complete -c amux -n '__amux_at " sessions list"' -l limit -x -d 'At most so many; 0 means all.'
complete -c amux -n '__amux_at " sessions list"' -l sort -x -a 'date cost turns' -d 'What comes first.'
complete -c amux -n '__amux_at " sessions list"' -l asc -d 'The least first.'
complete -c amux -n '__amux_at " sessions list"' -l subagents -d 'Sub-agents too.'
complete -c amux -n '__amux_at " sessions list"' -l tree -d 'Forks and sub-agents below the session they come from.'
complete -c amux -n '__amux_at " sessions list"' -l no-archived -d 'Without archived sessions.'
complete -c amux -n '__amux_at " sessions list"' -l ids-from -r -F -d 'Only the ids in this file, in its order: agentloop.json, or one id a line.'
complete -c amux -n '__amux_at " sessions list"' -l json -d 'Print JSON.'
complete -c amux -n '__amux_at " sessions list"' -k -a '(__amux_argument agents)'
complete -c amux -n '__amux_at " sessions resume"' -l last -d 'The newest session, of AGENT if one is given.'
complete -c amux -n '__amux_at " sessions resume"' -l cwd -x -a '(__fish_complete_directories)' -d 'Start here instead of where it ran.'
complete -c amux -n '__amux_at " sessions resume"' -l model -x -a '(__amux_ask models)' -d 'With this model, as the agent calls it.'
complete -c amux -n '__amux_at " sessions resume"' -l tag -x -a '(__amux_ask tags)' -d 'Tag the session; may be repeated.'
complete -c amux -n '__amux_at " sessions resume"' -l in -x -a '(__amux_ask agents)' -d 'In a new session of this agent, with a brief of the old one.'
complete -c amux -n '__amux_at " sessions resume"' -s y -l yes -d 'Ask nothing.'
complete -c amux -n '__amux_at " sessions resume"' -l print -d 'Print the command and start nothing.'
complete -c amux -n '__amux_at " sessions resume"' -l json -d 'Print JSON.'
complete -c amux -n '__amux_at " sessions resume"' -k -a '(__amux_argument sessions)'
complete -c amux -n '__amux_at " sessions search"' -l agent -x -a '(__amux_ask agents)' -d 'Only this agent; may be repeated.'
complete -c amux -n '__amux_at " sessions search"' -l since -x -a 'today yesterday 7d 30d' -d 'From this date on: 2026-11-18, 7d, 2w, today.'
complete -c amux -n '__amux_at " sessions search"' -l until -x -a 'today yesterday 7d 30d' -d 'Up to this date; a day means the whole day.'
complete -c amux -n '__amux_at " sessions search"' -l model -x -a '(__amux_ask models)' -d 'Only models with this in their id.'
complete -c amux -n '__amux_at " sessions search"' -l tag -x -a '(__amux_ask tags)' -d 'Only with this tag; repeated: any of them.'
complete -c amux -n '__amux_at " sessions search"' -l cwd -x -a '(__fish_complete_directories)' -d 'Only this directory and what is below it.'
complete -c amux -n '__amux_at " sessions search"' -l role -x -a 'user assistant tool thinking title' -d 'Only in what this one said.'
complete -c amux -n '__amux_at " sessions search"' -l limit -x -d 'At most so many; 0 means all.'
complete -c amux -n '__amux_at " sessions search"' -l sort -x -a 'relevance date cost' -d 'What comes first.'
complete -c amux -n '__amux_at " sessions search"' -l regex -d 'QUERY is a regular expression.'
complete -c amux -n '__amux_at " sessions search"' -l json -d 'Print JSON.'
complete -c amux -n '__amux_at " sessions show"' -l format -x -a 'markdown json jsonl' -d 'How to print it.'
complete -c amux -n '__amux_at " sessions show"' -l tools -x -a 'full short none' -d 'Tool calls: whole, one line each, or none.'
complete -c amux -n '__amux_at " sessions show"' -l thinking -d 'With the model\'s thinking.'
complete -c amux -n '__amux_at " sessions show"' -l head -x -d 'Only the first N turns.'
complete -c amux -n '__amux_at " sessions show"' -l tail -x -d 'Only the last N turns.'
complete -c amux -n '__amux_at " sessions show"' -l raw -d 'With the agent\'s own records (JSON).'
complete -c amux -n '__amux_at " sessions show"' -l redact -d 'Without secrets, e-mail addresses and your user name.'
complete -c amux -n '__amux_at " sessions show"' -l json -d 'Print JSON.'
complete -c amux -n '__amux_at " sessions show"' -k -a '(__amux_argument sessions)'
complete -c amux -n '__amux_at " sessions tag"' -l remove -d 'Take the tags away.'
complete -c amux -n '__amux_at " sessions tag"' -l json -d 'Print JSON.'
complete -c amux -n '__amux_at " sessions tag"' -k -a '(__amux_argument sessions,tags+)'
