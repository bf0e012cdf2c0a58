# shellcheck shell=bash
#
# Common parts of the scripts: packages, an ordinary user to run a server as, a private copy of the
# PostgreSQL installation, throwaway servers in it, the parts of a test. Sourced by a bash script
# that has set -euo pipefail. In this order:
#
#   make_workdir                      $workdir: when the script ends, in any way, the folder is removed,
#                                     and the processes that "unprivileged" started are ended
#   choose_server                     $server_version, and its packages in server_needs
#   need_packages "${server_needs[@]}" make=make ...
#   make_private_tree                 PG_CONFIG and PATH lead into the tree from here on
#   build_and_install [ARGUMENT...]   a copy of the sources in $build; make's arguments
#   start_server DIR [SETTING...]     libpq's variables (PGHOST ...) lead to that server
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
build=        # the copy of the sources, set by build_and_install
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
    mkdir -- "$workdir/tmp"
    give_away "$workdir"
    export TMPDIR=$workdir/tmp # temporary files of the programs that are started go with the folder
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
# may hold files that change psql, make or perl.
unprivileged() {
    as_ordinary_user env HOME="$workdir" PATH="$PATH" "$@"
}

# -h: of the links themselves, never of their targets.
give_away() {
    ((EUID != 0)) || chown -hR "$ordinary_user:" "$@"
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
progress_interval=60
step= # the name of the step for last_line

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
            printf -v line '%s%4d s  %s' "$step" $((SECONDS - start)) "$("$progress" "$1" || true)"
            say "${line:0:200}"
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

# shellcheck source-path=SCRIPTDIR source=../script/lib/packages.sh
. "$source_dir/script/lib/packages.sh"
# shellcheck source-path=SCRIPTDIR source=../script/lib/postgresql.sh
. "$source_dir/script/lib/postgresql.sh"
# shellcheck source-path=SCRIPTDIR source=../script/lib/results.sh
. "$source_dir/script/lib/results.sh"
