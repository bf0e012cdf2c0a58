# fish completion of snowflake-shard: verbs, and the options that a verb's --help lists.
# CLI11 2.6 writes headings in capitals. "global" has verbs of its own.

function __snowflake_shard_verbs # PROGRAM [VERB]
    $argv --help 2>/dev/null | sed -En '/^(Subcommands|SUBCOMMANDS):/,/^$/s/^  ([a-z]+) .*/\1/p'
end

function __snowflake_shard
    set -l words (commandline -opc)
    set -l current (commandline -ct)
    set -l named $words[1]
    set -l verbs (__snowflake_shard_verbs $named)
    for word in $words[2..-1]
        contains -- $word $verbs; or break
        set -a named $word
        set verbs (__snowflake_shard_verbs $named)
    end
    switch $words[-1]
        case --file --config --weights --plan --since
            __fish_complete_path $current
        case --dir
            __fish_complete_directories $current
        case --format
            printf '%s\n' table json jsonl csv pgbouncer plproxy prometheus
        case '*'
            if string match -q '@*' -- $current # a file with the servers
                printf '@%s\n' (__fish_complete_path (string sub -s 2 -- $current))
            else if string match -q -- '-*' $current
                $named --help 2>/dev/null | sed -En 's/^ {2,12}(-h, *)?(--[a-z-]+).*/\2/p'
            else
                test (count $named) -gt 1; or set -a verbs help version
                printf '%s\n' $verbs
            end
    end
end

complete -c snowflake-shard -f -a '(__snowflake_shard)'
