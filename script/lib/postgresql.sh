# shellcheck shell=bash disable=SC2154 # lib.sh sets the variables
#
# The PostgreSQL to build and test with, a private copy of it, the build, and servers: a part of lib.sh.

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
        update_package_lists # a fresh container has none
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
    ((${#entries[@]} == 0)) || ln -s -- "${entries[@]}" "$tree$1"
}

# --- building ----------------------------------------------------------------------------------

# The sources as they are, committed or not, in a folder of their own: no other build's objects, and none left behind.
copy_sources() {
    local version made
    version=$(sed -n "s/^default_version = '\(.*\)'/\1/p" "$source_dir/snowflake.control")
    made=(./.git '*.o' '*.bc' '*.d' '*.so' "./snowflake--$version.sql"
        ./compile_commands.json ./tmp_check ./results ./output_iso ./log ./together
        ./test/unit/unit ./test/model/model ./test/model/model_move ./test/stress/stress ./test/mutations/mutations
        ./cli/snowflake-shard ./cli/snowflake-shard.1 ./cli/precompiled.h.gch)
    build=${build:-$workdir/build}
    mkdir -p -- "$build"
    tar -C "$source_dir" "${made[@]/#/--exclude=}" -cf - . | tar -C "$build" -xof -
    give_away "$build"
}

build_and_install() {
    copy_sources
    can_make_bitcode || set -- with_llvm=no "$@"
    run_logged "$build.log" make_and_install "$@" || {
        cat "$build.log" >&2
        die "The build failed: its messages stand above."
    }
}

# build_for_version N: the extension alone, for another PostgreSQL of Debian in the same tree. PG_CONFIG, PATH and build
# stay as they are.
build_for_version() {
    local server_bindir=/usr/lib/postgresql/$1/bin build=$workdir/build$1 PG_CONFIG PATH=$PATH
    make_private_tree
    build_and_install HAS_CLI_HEADERS=
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
