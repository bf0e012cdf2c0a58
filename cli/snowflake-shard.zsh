#compdef snowflake-shard
# zsh completion of snowflake-shard: verbs, and the options that a verb's --help lists.
# CLI11 2.6 writes headings in capitals. "global" has verbs of its own.

_snowflake_shard_verbs() # PROGRAM [VERB]
{
    "$@" --help 2>/dev/null | sed -En '/^(Subcommands|SUBCOMMANDS):/,/^$/s/^  ([a-z]+) .*/\1/p'
}

_snowflake_shard()
{
    local word
    local -a named verbs
    named=("$words[1]")
    verbs=($(_snowflake_shard_verbs $named))
    for word in "${(@)words[2,CURRENT - 1]}"; do
        ((${verbs[(Ie)$word]})) || break
        named+=("$word")
        verbs=($(_snowflake_shard_verbs $named))
    done
    case ${words[CURRENT - 1]} in
    --file | --config | --weights | --plan | --since) _files ;;
    --dir) _files -/ ;;
    --format) compadd -- table json jsonl csv pgbouncer plproxy prometheus ;;
    *)
        if compset -P @; then
            _files # with the servers
        elif [[ $PREFIX == -* ]]; then
            compadd -- $($named --help 2>/dev/null | sed -En 's/^ {2,12}(-h, *)?(--[a-z-]+).*/\2/p')
        elif (($#named == 1)); then
            compadd -- $verbs help version
        else
            compadd -- $verbs
        fi
        ;;
    esac
}

_snowflake_shard "$@"
