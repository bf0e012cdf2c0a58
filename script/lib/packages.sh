# shellcheck shell=bash disable=SC2154 # lib.sh sets the variables
#
# Packages that a script needs: a part of lib.sh.

# need_packages PACKAGE=PROBE...: installs the packages whose probe is not there, and ends the script if it cannot.
# A probe is a program, a file (/...) or a module of Perl (perl:...), Python (python:...) or Ruby (ruby:...), so that every
# system that has them passes.
need_packages() {
    local item missing
    list_missing "$@"
    ((${#missing[@]} > 0)) || return 0
    can_install || die "$(explain_missing "${missing[@]}")"
    say "Installing ${missing[*]} (apt-get)."
    apt_install "${missing[@]}" || die "$(explain_failure "${missing[@]}") Install them, then run this script again."
    for item; do
        is_there "${item#*=}" || die "${item%%=*} is installed, but ${item#*=} is not there."
    done
    [[ " ${missing[*]} " != *" postgresql-${server_version-} "* ]] || : >"$workdir/new_server"
}

# want_packages PACKAGE=PROBE...: installs those that can be installed. Tests of a missing one are
# skipped, with a message.
want_packages() {
    local package missing refused=()
    list_missing "$@"
    { ((${#missing[@]} > 0)) && can_install; } || return 0
    say "Installing ${missing[*]} (apt-get)."
    apt_install "${missing[@]}" && return
    for package in "${missing[@]}"; do # a release may lack one
        apt_install "$package" || refused+=("$package")
    done
    ((${#refused[@]} == 0)) || say "$(explain_failure "${refused[@]}") Tests that need them are skipped."
}

# list_missing PACKAGE=PROBE...: sets the caller's array "missing".
list_missing() {
    local item package
    missing=()
    for item; do
        package=${item%%=*}
        is_there "${item#*=}" || [[ " ${missing[*]-} " == *" $package "* ]] || missing+=("$package")
    done
}

# At the end of a script, where it is seen.
mention_cluster() {
    [[ -e $workdir/new_server && ! -e /etc/postgresql/$server_version/main ]] || return 0
    cat <<TEXT

The package postgresql-$server_version was installed for this, and no cluster was made. A later "apt-get
install postgresql" makes none either, because the package is there. To make one, as root:

    pg_createcluster $server_version main --locale C.UTF-8 --start
TEXT
    rm -f -- "$workdir/new_server"
}

explain_missing() {
    cat <<TEXT
Missing here: $*
On Debian or Ubuntu, install them as root:

    apt-get install $*

On other systems packages have other names: it takes a C++17 compiler, GNU make, and PostgreSQL
$oldest_version or later with its server headers. Where its pg_config is not in PATH, set PG_CONFIG to it.
TEXT
}

is_there() {
    case $1 in
    /*) [[ -e $1 ]] ;;
    perl:*) perl -M"${1#perl:}" -e 1 >/dev/null 2>&1 ;;
    ruby:*) as_ordinary_user ruby -e "require '${1#ruby:}'" >/dev/null 2>&1 ;;
    python:*) as_ordinary_user python3 -c "import ${1#python:}" >/dev/null 2>&1 ;;
    *) command -v "$1" >/dev/null ;;
    esac
}

can_install() {
    command -v apt-get >/dev/null && { ((EUID == 0)) || sudo -n true 2>/dev/null; }
}

as_root() {
    if ((EUID == 0)); then "$@"; else sudo -n "$@"; fi
}

# Waits while another program has apt's locks. Package scripts run java, which would leave a file in /tmp.
apt_get() {
    local deadline=$((SECONDS + 300)) is_waiting=no
    until as_root env DEBIAN_FRONTEND=noninteractive NEEDRESTART_SUSPEND=1 JAVA_TOOL_OPTIONS=-XX:-UsePerfData \
        apt-get -q -o Dpkg::Use-Pty=0 "$@" </dev/null >"$workdir/apt.log" 2>&1; do
        { grep -q 'Could not get lock' "$workdir/apt.log" && ((SECONDS < deadline)); } || return 1
        [[ $is_waiting == yes ]] || say 'Another program uses apt: waiting for it, at most five minutes.' >&2
        is_waiting=yes
        sleep 2
    done
}

# explain_failure PACKAGE...: why they are not installed, in a line.
explain_failure() {
    if [[ -e $workdir/no_mirror ]]; then
        printf 'These packages are missing and cannot be fetched (no network?): %s.\n' "$*"
    else
        printf 'These packages are missing and apt-get cannot install them: %s (%s).\n' "$*" \
            "$(grep -m 1 '^E: ' "$workdir/apt.log")"
    fi
}

# Debian's server package makes a cluster and starts it, and starts every cluster that is down; the
# package of PgBouncer starts PgBouncer. Two files forbid that while apt-get runs, and are removed
# after it: one that postgresql-common reads before it makes a cluster, one that is asked before a
# service is started. A policy-rc.d that is there is the administrator's, and stays as it is.
apt_install() (
    no_cluster=/etc/postgresql-common/createcluster.d/snowflake-lib-sh.conf
    no_start=/usr/sbin/policy-rc.d
    made=()
    apt_flags=(-y --no-install-recommends --no-upgrade --no-remove)
    # shellcheck disable=SC2317 # called by the trap
    take_away() {
        ((${#made[@]} == 0)) || as_root rm -f -- "${made[@]}"
        # The folders go if they are empty and no package's.
        dpkg -S "${no_cluster%/*}" >/dev/null 2>&1 ||
            as_root rmdir --parents --ignore-fail-on-non-empty -- "${no_cluster%/*}"
    }
    trap take_away EXIT
    trap 'exit 130' HUP INT PIPE TERM

    update_package_lists
    as_root mkdir -p -- "${no_cluster%/*}"
    made+=("$no_cluster")
    write_as_root "$no_cluster" 'create_main_cluster = false'
    if [[ ! -e $no_start && ! -L $no_start ]]; then
        made+=("$no_start")
        write_as_root "$no_start" '#!/bin/sh' \
            '# Made for the length of one apt-get by script/lib.sh of snowflake; may be removed.' \
            'case " $*" in *" postgresql"* | *" pgbouncer"*) exit 101 ;; esac'
        as_root chmod 755 "$no_start"
    fi
    [[ ! -e $workdir/no_mirror ]] || apt_flags+=(--no-download) # apt may have the packages in its cache
    apt_get install "${apt_flags[@]}" -- "$@"
)

# Once is enough: a file is there after it. The status of apt-get does not tell whether a mirror answered.
update_package_lists() {
    [[ ! -e $workdir/package_lists ]] || return 0
    apt_get update || true
    : >"$workdir/package_lists"
    grep -qE '^(Hit|Get):' "$workdir/apt.log" || : >"$workdir/no_mirror"
}

write_as_root() {
    printf '%s\n' "${@:2}" | as_root tee -- "$1" >/dev/null
}

# For snowflake-shard; without these headers make leaves it out.
# shellcheck disable=SC2034 # for the caller
readonly command_needs=(libcli11-dev=/usr/include/CLI/CLI.hpp
    nlohmann-json3-dev=/usr/include/nlohmann/json.hpp)
