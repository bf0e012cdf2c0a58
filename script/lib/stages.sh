# shellcheck shell=bash disable=SC2154 # script/test and lib.sh set the variables
#
# The stages but lint: a part of script/test. A stage returns its own status: set -e does not hold within it.

stage_unit() {
    unprivileged make -C "$build" -s unit && unprivileged "$build/test/unit/unit"
}

# Two stages take the models, side by side.
make_models() {
    unprivileged flock "$build/Makefile" make -C "$build" -s model
}

stage_model() {
    make_models && unprivileged "$build/test/model/model" && unprivileged "$build/test/model/model_move"
}

stage_deep_model() {
    make_models && unprivileged "$build/test/model/model_move" --deep
}

stage_cost() {
    mkdir -p -- "$workdir/cost" && give_away "$workdir/cost" &&
        unprivileged "$build/test/instructions/check" "$workdir/cost" "$build/snowflake.so" "$server_version"
}

stage_regress() {
    installcheck ISOLATION= TAP_TESTS= REGRESS="${files[regress]}"
}

stage_isolation() {
    installcheck REGRESS= TAP_TESTS= ISOLATION="${files[isolation]}"
}

stage_docs() {
    local pages
    read -ra pages <<<"${files[docs]}"
    cd -- "$build" && unprivileged test/docs/check.pl "${pages[@]}"
}

# The numbers of test files, those that take longest first: one of them alone at the end would leave processors idle.
readonly longest='086 079 048 045 062 002 042 063 072 038 068 052 044'

# Each of the files in a line, in that order.
longest_first() {
    printf '%s\n' "$@" | awk -v longest="$longest" '{
        number = substr($0, match($0, "[0-9]+_"), 3)
        at = index(longest, number)
        print (at > 0 ? at : length(longest) + NR), $0
    }' | sort -n | cut -d ' ' -f 2
}

# Most of a file's time is waiting. With --merge a file's messages stand among its own results. Side by side on a busy machine
# something may take longer than the three minutes that PostgreSQL's test modules wait for.
stage_tap() {
    # shellcheck disable=SC2086 # a list of files
    PG_TEST_TIMEOUT_DEFAULT=${PG_TEST_TIMEOUT_DEFAULT:-900} installcheck REGRESS= ISOLATION= TAP_TESTS=1 \
        PROVE_FLAGS="--verbose --merge --jobs $(($(getconf _NPROCESSORS_ONLN) + 2))" PROVE_TESTS="$(longest_first ${files[tap]} | xargs)"
}

# Clusters of the TAP tests are copies of these. snowflake-shard tells servers apart by their system identifiers, so there are
# three: as many servers as most tests have. Locale and arguments are those of Cluster.pm. pg_dump reads all comments, also
# those of PostgreSQL's own objects, and writes none of these: without them it takes a seventh less of the processor time.
make_templates() {
    local number database
    export SNOWFLAKE_TEST_TEMPLATES=$workdir/templates
    mkdir -- "$SNOWFLAKE_TEST_TEMPLATES" 2>/dev/null || return 0
    give_away "$SNOWFLAKE_TEST_TEMPLATES"
    for number in 1 2 3; do
        unprivileged env -u LC_ALL LC_MESSAGES=C initdb -D "$SNOWFLAKE_TEST_TEMPLATES/$number" -A trust -N \
            >"$workdir/initdb.log" ||
            die "initdb failed: $(<"$workdir/initdb.log")"
        for database in template1 postgres; do
            printf '%s\n' 'DELETE FROM pg_description' 'VACUUM FULL pg_description' |
                unprivileged postgres --single -F -D "$SNOWFLAKE_TEST_TEMPLATES/$number" "$database" >"$workdir/initdb.log" 2>&1
        done
    done
}

stage_faults() {
    SNOWFLAKE_TEST_LONG=1 SNOWFLAKE_TEST_REPORT=$report installcheck \
        REGRESS= ISOLATION= TAP_TESTS=1 PROVE_FLAGS='--verbose --timer' PROVE_TESTS="${files[faults]}"
}

# Each of the processes has servers of its own. The table stands in the log.
stage_gaps() {
    make_models || return
    SNOWFLAKE_TEST_GAPS=$gaps$'\n'${names[gaps]-} installcheck REGRESS= ISOLATION= TAP_TESTS=1 \
        PROVE_FLAGS='--verbose --merge' PROVE_TESTS='test/gaps/model.pl test/gaps/gaps.pl'
}

# More clients than cores, and more than 1024 IDs a millisecond demanded.
stage_stress() {
    unprivileged make -C "$build" -s stress || return
    local stress=$build/test/stress/stress status=0
    check 'statements; the original is caught under the same load' \
        unprivileged "$stress" --prove --clients 8 --mode statement || status=1
    check 'batches' unprivileged "$stress" --setup --clients 8 --ids 50000 --mode batch || status=1
    check 'a mixed load' unprivileged "$stress" --setup --clients 8 --ids 100000 --mode mixed ||
        status=1
    check 'single IDs' unprivileged "$stress" --setup --clients 8 --ids 10000 --mode single || status=1
    return "$status"
}
