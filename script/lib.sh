# shellcheck shell=bash
#
# What the scripts share: packages, an ordinary user to run a server as, a private copy of the
# PostgreSQL installation, throwaway servers in it, the parts of a test. Sourced by a bash script
# that has set -euo pipefail. In this order:
#
#   make_workdir                      $workdir: when the script ends, in any way, the folder is removed,
#                                     and the processes that "unprivileged" started are ended
#   choose_server                     $server_version, and in server_needs what it takes
#   need_packages "${server_needs[@]}" make=make ...
#   make_private_tree                 PG_CONFIG and PATH lead into the tree from here on
#   build_and_install [ARGUMENT...]   a copy of the sources in $build; make's arguments
#   start_server DIR [SETTING...]     PGHOST and its like lead to that server from here on
#   unprivileged COMMAND...           psql, pgbench, make -C "$build" installcheck ...
#   run_logged LOG COMMAND...         a long step
#   run_part NAME HARNESS COMMAND...  a part of the tests
#
# The installed PostgreSQL is read and never written, and no cluster of it is touched.

# Settings for other purposes: libpq's PGHOST or PGSERVICE would lead to a real server.
unset CDPATH MAKEFLAGS MAKELEVEL MFLAGS
for name in "${!PG@}"; do
    [[ $name == PG_* ]] || unset "$name"
done
unset name
export LC_ALL=C
PATH=$PATH:/usr/local/sbin:/usr/sbin:/sbin # useradd, runuser: not in every root's path
source_dir=$(cd -- "$(dirname -- "${BASH_SOURCE[0]}")/.." && pwd -P)
case ${PG_CONFIG:-} in
/* | '') ;;
*/*) PG_CONFIG=$PWD/$PG_CONFIG ;;
esac

readonly ordinary_user=snowflake-test
readonly oldest_version=15

workdir=      # set by make_workdir
keep_workdir= # yes: the folder and its servers outlive the script
keep_logs=    # yes: the folder outlives the script
leftovers=()  # more files that are removed with the work folder
job=          # the process that run_logged waits for
ticker=       # the process that shows how far it is

say() { printf '%s\n' "$*"; }

die() {
    printf '%s\n' "$*" >&2
    exit 1
}

# --- the work folder and the end of the script -------------------------------------------------

# The ordinary user must be able to get into the folder, a socket's path must be shorter than 107
# bytes, and PostgreSQL's makefiles take no spaces: where TMPDIR does not allow that, /tmp does.
make_workdir() {
    local parent
    ((EUID != 0)) || make_ordinary_user
    trap clean_up EXIT
    trap 'exit 129' HUP
    trap 'exit 130' INT
    trap 'exit 141' PIPE
    trap 'exit 143' TERM
    for parent in "${TMPDIR:-/tmp}" /tmp; do
        parent=$(cd -- "$parent" 2>/dev/null && pwd -P) || continue
        if [[ ${#parent} -le 50 && $parent != *[[:space:]]* ]] && as_ordinary_user test -x "$parent"; then
            workdir=$(mktemp -d "$parent/snowflake.XXXXXX") && break
        fi
    done
    [[ -n $workdir ]] || die "No folder for temporary files: set TMPDIR to one."
    give_away "$workdir"
    cd -- "$workdir" || exit # the ordinary user may not be able to read the caller's
}

clean_up() {
    local status=$?
    trap '' HUP INT PIPE TERM # once is enough
    set +e
    stop_ticker
    [[ -z $job ]] || kill -KILL "$job" 2>/dev/null
    if [[ -n $workdir && $keep_workdir != yes ]]; then
        cd /
        end_processes
        mention_cluster
        rm -rf -- ${leftovers[@]+"${leftovers[@]}"}
        if [[ $keep_logs == yes ]]; then
            printf 'The logs are in %s.\n' "$workdir" >&2
        else
            rm -rf -- "$workdir"
        fi
    fi
    exit "$status"
}

# No process outlives the script. Tests end first, because they could start another server; a server
# is asked to stop, because its shared memory would stay after a SIGKILL.
end_processes() {
    local file tries
    kill_all "$(comm -23 <(list_started) <(list_servers))"
    while read -r file; do
        unprivileged pg_ctl -D "${file%/*}" -m immediate -t 20 stop </dev/null >/dev/null
    done < <(find "$workdir" -name postmaster.pid)
    for ((tries = 0; tries < 50; tries++)); do
        kill_all "$(list_started; list_running)" || break
        sleep 0.1
    done
} 2>/dev/null

# The processes that "unprivileged" has started, and theirs: nothing else has the work folder as its
# HOME. A server's own processes are not among them, because they overwrite their environment.
list_started() {
    grep -lszxF -- "HOME=$workdir" /proc/[0-9]*/environ | cut -d / -f 3 | sort
}

# The processes whose program is in the work folder, such as the backends of a server that is dead.
list_running() {
    find /proc -maxdepth 2 -name exe -lname "$workdir/*" | cut -d / -f 3
}

# The first line of the file is the process ID.
list_servers() {
    find "$workdir" -name postmaster.pid -exec sed -n '1p;q' {} \; | sort
}

# kill_all PIDS: one a line. False if there is none.
kill_all() {
    local pids
    mapfile -t pids <<<"$1"
    [[ -n $1 ]] && kill -KILL "${pids[@]}"
}

# run_script COMMAND...: a script that sources this file. A signal is passed on to it, and this
# script ends when it has ended.
run_script() {
    # An asynchronous command ignores SIGINT unless it is told otherwise.
    (trap - INT QUIT && exec "$@") &
    job=$!
    trap 'kill -TERM "$job"; wait "$job"; exit 143' HUP INT TERM
    wait "$job"
}

# --- the ordinary user -------------------------------------------------------------------------

# The server refuses to run as root. The user stays on the machine, for the next time.
make_ordinary_user() {
    id -u "$ordinary_user" >/dev/null 2>&1 && return
    say "Making the system user $ordinary_user: PostgreSQL refuses to run as root."
    useradd --system --user-group --home-dir /nonexistent --no-create-home \
        --shell /usr/sbin/nologin "$ordinary_user"
}

as_ordinary_user() {
    if ((EUID == 0)); then
        runuser -u "$ordinary_user" -- "$@"
    else
        "$@"
    fi
}

# unprivileged COMMAND...: as the ordinary user. Root's HOME is closed to others, and a user's own
# may hold files that change what psql, make or perl do.
unprivileged() {
    as_ordinary_user env HOME="$workdir" PATH="$PATH" "$@"
}

# -h: of the links themselves, never of what they lead to.
give_away() {
    ((EUID != 0)) || chown -hR "$ordinary_user:" "$@"
}

# --- packages ----------------------------------------------------------------------------------

# need_packages PACKAGE=PROBE...: installs the packages whose probe is not there. A probe is a
# program, a file (/...) or a Perl module (perl:...), so that any system will do that has them.
need_packages() {
    local item package missing=()
    for item; do
        package=${item%%=*}
        is_there "${item#*=}" || [[ " ${missing[*]-} " == *" $package "* ]] || missing+=("$package")
    done
    ((${#missing[@]} > 0)) || return 0
    can_install || die "$(explain_missing "${missing[@]}")"
    say "Installing ${missing[*]} (apt-get)."
    apt_install "${missing[@]}" || exit
    for item; do
        is_there "${item#*=}" || die "${item%%=*} is installed, but ${item#*=} is not there."
    done
    [[ " ${missing[*]} " != *" postgresql-${server_version-} "* ]] || : >"$workdir/new_server"
}

# want_packages PACKAGE=PROBE...: installs what can be installed. Tests that need one that is not
# there say so, and are skipped.
want_packages() {
    local item
    can_install || return 0
    for item; do
        (need_packages "$item") || true
    done
}

# At the end of a script, where it is seen.
mention_cluster() {
    [[ -e $workdir/new_server && ! -e /etc/postgresql/$server_version/main ]] || return 0
    cat <<TEXT

The package postgresql-$server_version was installed for this, and no cluster was made. A later "apt-get
install postgresql" makes none either, because the package is there. To make one, as root:

    pg_createcluster $server_version main --start
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
    *) command -v "$1" >/dev/null ;;
    esac
}

can_install() {
    command -v apt-get >/dev/null && { ((EUID == 0)) || sudo -n true 2>/dev/null; }
}

as_root() {
    if ((EUID == 0)); then "$@"; else sudo -n "$@"; fi
}

apt_get() {
    as_root env DEBIAN_FRONTEND=noninteractive NEEDRESTART_SUSPEND=1 \
        apt-get -q -o Dpkg::Use-Pty=0 -o DPkg::Lock::Timeout=300 "$@" \
        </dev/null >"$workdir/apt.log" 2>&1
}

# Debian's server package makes a cluster and starts it, and starts every cluster that is down; the
# package of PgBouncer starts PgBouncer. Two files forbid that while apt-get runs, and are removed
# after it: one that postgresql-common reads before it makes a cluster, one that is asked before a
# service is started. A policy-rc.d that is there is the administrator's, and stays as it is.
apt_install() (
    no_cluster=/etc/postgresql-common/createcluster.d/snowflake-lib-sh.conf
    no_start=/usr/sbin/policy-rc.d
    made=()
    # shellcheck disable=SC2317 # called by the trap
    take_away() {
        ((${#made[@]} == 0)) || as_root rm -f -- "${made[@]}"
        # The folder goes if it is empty and no package's.
        dpkg -S "${no_cluster%/*}" >/dev/null 2>&1 ||
            as_root rmdir --ignore-fail-on-non-empty -- "${no_cluster%/*}"
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
    apt_get install -y --no-install-recommends --no-upgrade --no-remove -- "$@" || {
        cat "$workdir/apt.log" >&2
        die "apt-get install failed: its messages stand above."
    }
)

# Once is enough: the file is there after it.
update_package_lists() {
    [[ ! -e $workdir/package_lists ]] || return 0
    apt_get update || say "apt-get update failed; going on with the package lists that are there."
    : >"$workdir/package_lists"
}

write_as_root() {
    printf '%s\n' "${@:2}" | as_root tee -- "$1" >/dev/null
}

# What snowflake-shard is built from; without these headers make leaves it out.
# shellcheck disable=SC2034 # for the caller
readonly command_needs=(libcli11-dev=/usr/include/CLI/CLI.hpp
    nlohmann-json3-dev=/usr/include/nlohmann/json.hpp)

# --- which PostgreSQL --------------------------------------------------------------------------

# The one that PG_CONFIG names; else the first that extensions can be built for: pg_config's in
# PATH, Debian's from the newest on; else Debian's newest installed one, headers to be added; else
# the one that Debian would install.
choose_server() {
    local config
    config=$(choose_config) || exit
    server_bindir=${config%/*}
    if is_there "$config"; then
        server_bindir=$("$config" --bindir)
    fi
    list_server_needs "$config"
    ((server_version >= oldest_version)) || die "$(explain_too_old)"
}

choose_config() {
    local config version
    if [[ -n ${PG_CONFIG:-} ]]; then
        command -v "$PG_CONFIG" || printf '%s\n' "$PG_CONFIG"
        return
    fi
    for config in pg_config $(debian_configs); do
        if can_build "$config"; then
            command -v "$config"
            return
        fi
    done
    for config in $(debian_configs); do
        if is_there "${config%/*}/postgres"; then
            printf '%s\n' "$config"
            return
        fi
    done
    version=$(default_version) || exit
    printf '/usr/lib/postgresql/%s/bin/pg_config\n' "$version"
}

debian_configs() {
    { compgen -G '/usr/lib/postgresql/*/bin/pg_config' || true; } | sort -rV
}

can_build() {
    is_there "$1" && is_there "$("$1" --pgxs)" && is_there "$("$1" --includedir-server)/postgres.h"
} 2>/dev/null

# The version that Debian's package postgresql stands for: 15 in bookworm, 16 in Ubuntu 24.04.
default_version() {
    local version
    command -v apt-cache >/dev/null ||
        die "No PostgreSQL with its server headers is here. Set PG_CONFIG to the pg_config of one."
    version=$(candidate_version)
    if [[ -z $version ]] && can_install; then
        apt_get update # a fresh container has no package lists
        version=$(candidate_version)
    fi
    printf '%s\n' "${version:-$oldest_version}"
}

candidate_version() {
    apt-cache policy postgresql | sed -n 's/^ *Candidate: \([0-9][0-9]*\).*/\1/p'
}

# Debian's PostgreSQL can be completed by packages; another has to be complete.
list_server_needs() {
    local config=$1 program file files=()
    for program in postgres initdb pg_ctl psql pgbench; do
        files+=("$server_bindir/$program")
    done
    if [[ $server_bindir =~ ^/usr/lib/postgresql/([0-9]+)/bin$ ]]; then
        server_version=${BASH_REMATCH[1]}
        server_needs=("${files[@]/#/postgresql-$server_version=}"
            "postgresql-server-dev-$server_version=/usr/include/postgresql/$server_version/server/postgres.h")
        return
    fi
    is_there "$config" || die "PG_CONFIG=$config is not there."
    files+=("$("$config" --pgxs)" "$("$config" --includedir-server)/postgres.h")
    for file in "${files[@]}"; do
        is_there "$file" || die "$config: $file is missing. It takes a server and its headers."
    done
    server_version=$("$config" --version | sed 's/^PostgreSQL \([0-9]*\).*/\1/')
    # shellcheck disable=SC2034 # for the caller
    server_needs=()
}

explain_too_old() {
    cat <<TEXT
PostgreSQL $server_version is too old: snowflake needs $oldest_version or later.
https://www.postgresql.org/download/ has newer ones. Set PG_CONFIG to the pg_config of one.
TEXT
}

# --- a private copy of the installation ---------------------------------------------------------

# Before version 18 a server looks for extensions in its own folders only, and those belong to root.
# But it finds these folders from where its own executable lies, links resolved: so programs are
# copied, to the same path below $workdir/tree, all the rest is linked, and folders into which an
# extension installs are real ones. make install with the tree's pg_config then goes into the tree,
# and the tree's server finds it there.
make_private_tree() {
    local config=$server_bindir/pg_config sharedir pkglibdir mandir dir
    tree=$workdir/tree
    pkglibdir=$("$config" --pkglibdir)
    sharedir=$("$config" --sharedir)
    mandir=$("$config" --mandir)

    mkdir -p -- "$tree$server_bindir"
    cp -P -- "$server_bindir"/{postgres,initdb,psql,pg*,createdb,createuser,dropdb,dropuser,vacuumdb} \
        "$tree$server_bindir"
    for dir in "$pkglibdir/bitcode" "$pkglibdir" "$sharedir/extension" "$mandir/man1" "$mandir" \
        "$sharedir" "$("$config" --libdir)" "$("$config" --includedir)"; do
        link_folder "$dir"
    done
    # A snowflake that the system has is not the one to be tried.
    rm -f -- "$tree$pkglibdir"/{,bitcode/}snowflake{.so,,.index.bc} \
        "$tree$sharedir/extension"/snowflake{.control,--*.sql} "$tree$mandir/man1/snowflake-shard.1"
    give_away "$tree"

    export PG_CONFIG=$tree$server_bindir/pg_config PATH=$tree$server_bindir:$PATH
    [[ $(unprivileged "$PG_CONFIG" --sharedir) == "$tree$sharedir" ]] ||
        die "The copy of PostgreSQL in $tree does not work. Can programs be run in that folder?" \
            "Else set TMPDIR to another."
}

# link_folder DIR: its entries are linked where they would stand in the tree, but for those that are
# there already.
link_folder() {
    local entry entries=()
    [[ -d $1 ]] || return 0
    mkdir -p -- "$tree$1"
    for entry in "$1"/*; do
        [[ -e $tree$entry ]] || entries+=("$entry")
    done
    ln -s -- "${entries[@]}" "$tree$1"
}

# --- long steps --------------------------------------------------------------------------------

# run_logged LOG COMMAND...: the command's output goes to LOG, and a signal ends the script
# meanwhile. How far it is, is shown each second on a terminal, and else every $progress_interval
# seconds; the function $progress prints it.
run_logged() {
    local log=$1 status=0
    shift
    # An asynchronous command ignores SIGINT unless it is told otherwise.
    (trap - INT QUIT && "$@") </dev/null >"$log" 2>&1 &
    job=$!
    show_progress "$log" &
    ticker=$!
    wait "$job" || status=$?
    job=
    stop_ticker
    return "$status"
}

progress=last_line
progress_interval=300
step= # what last_line calls the step

last_line() {
    tail -n 1 -- "$1" || true
}

show_progress() {
    local start=$SECONDS shown=$SECONDS line
    while sleep 1 >/dev/null 2>&1; do
        if is_terminal; then
            printf -v line '%s%4d s  %s' "$step" $((SECONDS - start)) "$("$progress" "$1" || true)"
            printf '\r%s\e[K' "${line:0:79}"
        elif ((SECONDS - shown >= progress_interval)); then
            shown=$SECONDS
            printf '%s%4d s  %s\n' "$step" $((SECONDS - start)) "$("$progress" "$1" || true)"
        fi
    done
}

stop_ticker() {
    [[ -n $ticker ]] || return 0
    kill "$ticker" 2>/dev/null || true
    wait "$ticker" 2>/dev/null || true
    ticker=
    ! is_terminal || printf '\r\e[K'
}

is_terminal() {
    [[ -t 1 && ${TERM:-dumb} != dumb ]]
}

# --- building ----------------------------------------------------------------------------------

# Of the sources as they are, committed or not, in a folder of their own: no other build's objects,
# and none left behind.
build_and_install() {
    local made=(./.git '*.o' '*.bc' '*.so' './snowflake--*.sql'
        ./tmp_check ./results ./output_iso ./log
        ./test/unit/unit ./test/model/model ./test/stress/stress
        ./cli/snowflake-shard ./cli/snowflake-shard.1)
    build=$workdir/build
    mkdir -p -- "$build"
    tar -C "$source_dir" "${made[@]/#/--exclude=}" -cf - . | tar -C "$build" -xof -
    give_away "$build"
    can_make_bitcode || set -- with_llvm=no "$@"
    run_logged "$workdir/build.log" make_and_install "$@" || {
        cat "$workdir/build.log" >&2
        die "The build failed: its messages stand above."
    }
}

make_and_install() {
    unprivileged make -C "$build" -j"$(getconf _NPROCESSORS_ONLN)" "$@" all &&
        unprivileged make -C "$build" "$@" install
}

# A server with JIT wants the clang that it was built with.
can_make_bitcode() {
    local clang
    clang=$(sed -n 's/^CLANG *= *//p' "$(dirname -- "$("$PG_CONFIG" --pgxs)")/../Makefile.global")
    [[ -n $clang ]] && is_there "$clang"
}

# --- servers -----------------------------------------------------------------------------------

# start_server DIR [SETTING...]: a server with its data in DIR/data, reached by a socket in DIR and
# not by the network; a setting is a line of postgresql.conf, "fsync = off". Its superuser needs no
# password: nobody else gets into the folder. A server that was stopped is started again.
start_server() {
    local dir=$1
    if [[ ! -d $dir/data ]]; then
        mkdir -p -- "$dir"
        chmod 700 "$dir"
        give_away "$dir"
        unprivileged initdb -D "$dir/data" -U postgres -A trust -E UTF8 --locale=C --no-sync \
            >"$dir/initdb.log" 2>&1 || die "initdb failed: $(<"$dir/initdb.log")"
        printf '%s\n' "listen_addresses = ''" "unix_socket_directories = '$dir'" 'port = 5432' \
            >>"$dir/data/postgresql.conf"
    fi
    (($# == 1)) || printf '%s\n' "${@:2}" >>"$dir/data/postgresql.conf"
    unprivileged pg_ctl -D "$dir/data" -l "$dir/server.log" -w start >/dev/null ||
        die "The server does not start: $(tail -n 20 "$dir/server.log")"
    export PGHOST=$dir PGPORT=5432 PGUSER=postgres PGDATABASE=postgres
}

# stop_server DIR [smart|fast|immediate]: by the process ID in its data folder, never by name.
stop_server() {
    [[ -f $1/data/postmaster.pid ]] || return 0
    unprivileged pg_ctl -D "$1/data" -m "${2:-fast}" -w stop >/dev/null
}

# --- the parts of a test -------------------------------------------------------------------------

passed=0 # tests, counted by run_part
failed=0
skipped=0

# run_part NAME HARNESS COMMAND...: prints a line with the results; which tests were skipped, and why;
# and if one failed, the part of the log that says why. HARNESS is regress, gtest, model, docs, prove
# or check.
run_part() {
    local name=$1 harness=$2 log=$workdir/$1.log start=$SECONDS status=0
    local ok not_ok not_run
    step=$(printf '%-10s' "$name") run_logged "$log" "${@:3}" || status=$?
    read -r ok not_ok not_run < <(count_results "$harness" "$log")
    # A harness that dies, or runs nothing, has failed.
    ((not_ok > 0 || (status == 0 && ok + not_run > 0))) || not_ok=1
    passed=$((passed + ok)) failed=$((failed + not_ok)) skipped=$((skipped + not_run))
    printf '%-10s %s, %d s\n' "$name" "$(result_text "$ok" "$not_ok" "$not_run")" $((SECONDS - start))
    list_skipped "$log"
    ((not_ok > 0)) || return 0
    show_failures "$harness" "$log" || true
    say "--- $name failed"
    return 1
}

# result_text PASSED FAILED SKIPPED
result_text() {
    printf '%d passed, %d failed, %d skipped' "$@"
}

# count_results HARNESS LOG: three numbers, from what the harness has printed.
count_results() {
    case $1 in
    regress) # also isolation tests; the words are the same from version 15 to 18
        awk '/All [0-9]+ tests passed/ { for (i = 1; i < NF; i++) if ($i == "All") ok = $(i + 1) }
             /[0-9]+ of [0-9]+ tests failed/ {
                 for (i = 1; i < NF; i++) if ($i == "of") { not_ok = $(i - 1); ok = $(i + 1) - not_ok }
             }
             END { print ok + 0, not_ok + 0, 0 }' "$2"
        ;;
    gtest)
        awk '/^\[  PASSED  \] [0-9]+ test/ { ok = $4 }
             /^\[  FAILED  \] [0-9]+ test/ { not_ok = $4 }
             /^\[  SKIPPED \] [0-9]+ test/ { not_run = $4 }
             END { print ok + 0, not_ok + 0, not_run + 0 }' "$2"
        ;;
    model)
        awk '/^[0-9]+ passed, [0-9]+ failed, in / { ok = $1; not_ok = $3 }
             END { print ok + 0, not_ok + 0, 0 }' "$2"
        ;;
    docs) # a block may fail twice
        awk '/ blocks run, .* failures$/ { not_ok = $(NF - 1); ok = $1 > not_ok ? $1 - not_ok : 0 }
             END { print ok + 0, not_ok + 0, 0 }' "$2"
        ;;
    test) # script/test in a root of its own
        awk '/^[a-z]+ +[0-9]+ passed, [0-9]+ failed, [0-9]+ skipped, [0-9]+ s$/ {
                 ok += $2; not_ok += $4; not_run += $6
             }
             /^--- [a-z]+ was not run/ { not_ok++ }
             /^left out: / { not_run++ }
             END { print ok + 0, not_ok + 0, not_run + 0 }' "$2"
        ;;
    prove | check) # with --verbose; the last pattern is a file that died between its tests
        awk '/^ok ([0-9]+ )?[-#]/ { if (/ # skip /) not_run++; else ok++ }
             /^not ok ([0-9]+ )?[-#]/ { not_ok++ }
             /^test\/t\/.* skipped: / { not_run++ }
             /^test\/t\/.* \(Wstat: .* Failed: 0\)/ { not_ok++ }
             END { print ok + 0, not_ok + 0, not_run + 0 }' "$2"
        ;;
    esac
}

# From the output of prove --verbose.
list_skipped() {
    awk '/^test\/t\/[^ ]*\.pl / { file = $1; sub(/.*\//, "", file) }
         / # skip |^test\/t\/.* skipped: / { sub(/.* (# skip|skipped:) /, ""); print file ": " $0 }' "$1" |
        uniq -c | sed 's/^ *\([0-9]*\) /    \1 skipped in /'
}

# show_failures HARNESS LOG: the log without what went well, and what the harness has left to read.
show_failures() {
    local file
    grep -vE '^ok |\.\.\. +ok |^\[(---| RUN  |       OK )|^=+( |$)|^[A-Z ]*$' "$2" | tail -n 100
    case $1 in
    regress)
        for file in "$build"/{,output_iso/}regression.diffs; do
            [[ ! -s $file ]] || head -n 200 -- "$file"
        done
        ;;
    prove) # the output of a test file, and that of the programs it calls
        for file in "$build"/tmp_check/log/regress_log_*; do
            if grep -qw 'not ok' "$file" || ! grep -q ' 1\.\.' "$file"; then
                say "--- ${file##*/}"
                grep -w -A 10 'not ok' "$file" | head -n 50
                say '... and at the end'
                tail -n 20 -- "$file"
            fi
        done
        ;;
    esac
}

# check NAME COMMAND...: a test of one command, reported as a line of TAP after the command's output.
check() {
    if "${@:2}"; then
        say "ok - $1"
    else
        say "not ok - $1"
        return 1
    fi
}

# installcheck [ARGUMENT...]: make's arguments, REGRESS= and its like to leave a harness out.
installcheck() {
    unprivileged make -C "$build" -s "$@" installcheck
}

# show FILE: for a command that has failed.
show() {
    [[ ! -s $1 ]] || cat -- "$1"
    return 1
}
