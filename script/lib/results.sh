# shellcheck shell=bash disable=SC2154 # lib.sh sets the variables
#
# The parts of a test, and their results: a part of lib.sh.

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

# count_results HARNESS LOG: three numbers, from the output of the harness.
count_results() {
    case $1 in
    regress) # also isolation tests; the words are the same from version 15 to 19
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
        awk '/^[0-9]+ passed, [0-9]+ failed, in / { ok += $1; not_ok += $3 }
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
        # A subtest is indented; the line behind it, with less indentation, is its result and no assertion, unless it was skipped.
        awk '/^ *(1\.\.[0-9]|(not )?ok ([0-9]+ )?[-#])/ {
                 match($0, /^ */)
                 is_assertion = RLENGTH >= indentation && !/^ *1/
                 indentation = RLENGTH
                 if (/ # skip /) not_run++
                 else if (is_assertion && /^ *not/) not_ok++
                 else if (is_assertion) ok++
             }
             /^test\/t\/.* skipped: / { not_run++ }
             /^test\/t\/.* \(Wstat: .* Failed: 0\)/ { not_ok++ }
             END { print ok + 0, not_ok + 0, not_run + 0 }' "$2"
        ;;
    esac
}

# From the output of prove --verbose.
list_skipped() {
    awk '/^test\/t\/[^ ]*\.pl / { file = $1; sub(/.*\//, "", file) }
         / # skip |^test\/t\/.* skipped: / {
             name = file
             if (name == "") { name = $0; sub(/^ok [0-9]* *- /, "", name); sub(/ # skip .*/, "", name) }
             sub(/.* (# skip|skipped:) /, ""); print name ": " $0 }' "$1" |
        uniq -c | sed 's/^ *\([0-9]*\) /    \1 skipped in /'
}

# show_failures HARNESS LOG: the failures in the log, and the files that the harness has left to read.
show_failures() {
    local file well='^ *ok |\.\.\. +ok |^\[(---| RUN  |       OK )|^=+( |$)|^[A-Z ]*$'
    [[ $1 != prove ]] || well+='|^ *#|^ok$|^ *1\.\.[0-9]+( # SKIP .*)?$|^test/t/.* \.+ $' # diagnoses stand in the files' logs, too
    grep -vE "$well" "$2" | tail -n 100
    case $1 in
    regress)
        for file in "$build"/{,output_iso/}regression.diffs; do
            [[ ! -s $file ]] || head -n 200 -- "$file"
        done
        ;;
    prove)
        for file in "$build"/tmp_check/log/regress_log_*; do
            show_failed_assertions "$file"
        done
        ;;
    esac
}

# show_failed_assertions LOG: of a TAP file, each with its diagnosis, which stands behind it; then the output of the
# programs that it called, in which the cause stands before it.
show_failed_assertions() {
    local failure='^(\[[0-9:.]+\]\([0-9.]+s\) )? *not ok ' # of a subtest, too
    if grep -qE "$failure" "$1"; then
        say "--- ${1##*/}"
        grep -E -m 5 -A 20 "$failure" "$1"
        say "--- before it"
        grep -E -m 5 -B 60 "$failure" "$1"
    fi
    if ! grep -qE '^(\[[0-9:.]+\]\([0-9.]+s\) )?1\.\.[0-9]' "$1"; then
        say "--- ${1##*/} ends before its last test"
        tail -n 60 -- "$1"
    fi
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
