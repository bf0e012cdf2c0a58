#!/bin/sh
# The manual page of snowflake-shard, made of its --help: cli/manual.sh PROGRAM VERSION
set -eu

# Text of --help as it stands: troff must see neither its backslashes nor a dot or quote at a line's start.
as_it_stands() {
    printf '.nf\n'
    "$@" --help | sed -e 's/\\/\\e/g' -e 's/-/\\-/g' -e "s/^\([.']\)/\\\\\&\1/"
    printf '.fi\n'
}

printf '.TH SNOWFLAKE\\-SHARD 1 "" "snowflake %s" ""\n' "$2"
printf '.SH NAME\nsnowflake\\-shard \\- make, change and check logical shards\n'
verbs_of() {
    "$@" --help | sed -En '/^(Subcommands|SUBCOMMANDS):/,/^$/s/^  ([a-z]+) .*/\1/p'
}

# A line for each verb.
printf '.SH SYNOPSIS\n.nf\n'
for verb in $(verbs_of "$1"); do
    "$1" "$verb" --help | sed -En 's/-/\\-/g; s/^ *(Usage: )?(snowflake\\-shard '"$verb"' \[OPTIONS\].*)/\2/p' | head -n 1
done
printf '.fi\n.SH DESCRIPTION\n'
as_it_stands "$1"

for verb in $(verbs_of "$1"); do
    printf '.SH %s\n' "$verb"
    as_it_stands "$1" "$verb"
    # "global" has verbs of its own.
    for below in $(verbs_of "$1" "$verb"); do
        printf '.SS %s %s\n' "$verb" "$below"
        as_it_stands "$1" "$verb" "$below"
    done
done
