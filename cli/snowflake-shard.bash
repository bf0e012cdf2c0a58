# shellcheck shell=bash
# bash completion of snowflake-shard: verbs, and the options that a verb's --help lists.
# CLI11 2.6 writes headings in capitals. "global" has verbs of its own.

_snowflake_shard_verbs() # PROGRAM [VERB]
{
    "$@" --help 2>/dev/null | sed -En '/^(Subcommands|SUBCOMMANDS):/,/^$/s/^  ([a-z]+) .*/\1/p'
}

_snowflake_shard()
{
    local current=${COMP_WORDS[COMP_CWORD]} previous=${COMP_WORDS[COMP_CWORD - 1]} verb=
    ((COMP_CWORD > 1)) && verb=${COMP_WORDS[1]}
    case $previous in
    --file | --config | --weights | --plan | --since)
        mapfile -t COMPREPLY < <(compgen -f -- "$current")
        return
        ;;
    --dir)
        mapfile -t COMPREPLY < <(compgen -d -- "$current")
        return
        ;;
    --format)
        mapfile -t COMPREPLY < <(compgen -W 'table json jsonl csv pgbouncer plproxy prometheus' -- "$current")
        return
        ;;
    esac
    # @FILE has the servers.
    if [[ $current == @* ]]; then
        mapfile -t COMPREPLY < <(compgen -f -P @ -- "${current#@}")
        return
    fi
    local words=("$1") verbs
    [[ -z $verb ]] || words+=("$verb")
    verbs=$(_snowflake_shard_verbs "${words[@]}")
    if [[ -n $verb && -n $verbs ]] && ((COMP_CWORD > 2)); then
        words+=("${COMP_WORDS[2]}")
        verbs=
    fi
    if [[ -n $verbs ]]; then
        [[ -n $verb ]] || verbs+=' help version --help --version'
        mapfile -t COMPREPLY < <(compgen -W "$verbs" -- "$current")
    elif [[ $current == -* ]]; then
        mapfile -t COMPREPLY < <(compgen -W "$("${words[@]}" --help 2>/dev/null | sed -En 's/^ {2,12}(-h, *)?(--[a-z-]+).*/\2/p')" -- "$current")
    fi
}
complete -F _snowflake_shard snowflake-shard
