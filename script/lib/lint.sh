# shellcheck shell=bash disable=SC2154 # lib.sh sets the variables
#
# The stage lint: a part of script/test. It returns its own status: set -e does not hold within a stage.

stage_lint() {
    cd -- "$build" || return
    local library=$build/snowflake.so status=0
    check 'every file names the same version' unprivileged make -C "$build" -s checkver || status=1
    check 'every link of a page leads somewhere' unprivileged test/docs/links.pl ./*.md docs/*.md docs/*/*.md || status=1
    check 'every link of a page of the package leads somewhere' links_of_the_package || status=1
    check 'pages and comments are in plain words' unprivileged test/docs/words.pl \
        ./*.md docs/*.md docs/*/*.md src cli script || status=1
    check 'includes lead downwards, as ARCHITECTURE.md says' unprivileged test/docs/layers.pl ARCHITECTURE.md || status=1
    check 'long SQL of the command stands in cli/sql' has_no_long_sql || status=1
    check 'no SQL calls md5(), which fails where OpenSSL is in FIPS mode' calls_no_md5 || status=1
    check 'a hint with a statement that can run code of a role names the role' names_the_role || status=1
    check 'the compiler does not warn of our own files' is_without_warnings || status=1
    check 'make without a target makes the extension alone' makes_the_extension_alone || status=1
    check 'make says in one line that PG_CONFIG is wrong' says_what_is_wrong || status=1
    check 'make says in one line that it builds in the folder of the sources' refuses_another_folder || status=1
    check 'make compiles for another server anew' compiles_for_another_server || status=1
    check 'make says in one line that it leaves out snowflake-shard' says_what_is_left_out || status=1
    check 'snowflake.so needs the C library alone' needs_the_c_library_alone "$library" || status=1
    check 'snowflake.so takes no symbol from the C++ run time' takes_no_cxx "$library" || status=1
    check 'snowflake.so needs no symbol that older minor versions lack' needs_only_listed_symbols "$library" || status=1
    return "$status"
}

# A raw string of twelve lines or more would be SQL that belongs into cli/sql, where it can be run by itself.
has_no_long_sql() {
    # shellcheck disable=SC2016 # Perl's variables
    unprivileged perl -0777 -ne 'while (/R"\((.*?)\)"/sg) { my ($text, $at) = ($1, substr $_, 0, $-[0]);
        my ($lines, $line) = (1 + $text =~ tr/\n//, 1 + $at =~ tr/\n//);
        $found = print "$ARGV:$line: a raw string of $lines lines\n" if $lines >= 12 } END { exit($found ? 1 : 0) }' cli/*.cpp cli/*/*.cpp
}

calls_no_md5() {
    ! unprivileged grep -rniI --include='*.cpp' --include='*.h' --include='*.sql' 'md5(' cli src examples
}

# These statements evaluate expressions of the table, or call the function that they name. Not those that snowflake_adopt() tells its caller, who has
# named the function, and those of verify, which compare_definitions() tells with the role.
names_the_role() {
    # shellcheck disable=SC2016 # Perl's variables
    unprivileged perl -ne 'next if $ARGV =~ m{/3[5-7]-adopt|/global\.sql|/definition\.sql}; push @lines, $_; shift @lines if @lines > 3;
        $found = print "$ARGV:$.: $_" if "@lines" !~ /told_to|EXECUTE format/
            && /\x27(?:ALTER TABLE.*(?:ADD PRIMARY KEY|SET LOGGED|ADD CONSTRAINT)|ALTER %.*SET LOGGED|SELECT %ssnowflake_adopt)/;
        if (eof) { close ARGV; @lines = () } END { exit($found ? 1 : 0) }' \
        src/install/*.sql cli/*/*.cpp cli/sql/*.sql
}

# The folder of documentation, with the links as debian/rules changes them.
links_of_the_package() {
    local documentation=$workdir/documentation
    mkdir -p -- "$documentation" && cp -R debian/README.Debian SECURITY.md docs examples "$documentation" &&
        sed -i -E "$(sed -n "s/^\tsed -i -E '\(.*\)' .*/\1/p" debian/rules)" "$documentation"/docs/*.md "$documentation"/docs/*/*.md &&
        debian/tests/links "$documentation"
}

is_without_warnings() {
    ! grep -n 'warning:' "$workdir/build.log"
}

makes_the_extension_alone() {
    ! unprivileged make -C "$build" -n with_llvm=no | grep -E 'pg_regress|prove'
}

says_what_is_wrong() {
    local said
    said=$(unprivileged make --no-print-directory -C "$build" PG_CONFIG=/nonexistent 2>&1)
    [[ $said == *'PG_CONFIG=/nonexistent is not'* && $said != *$'\n'* ]] || { say "$said" && return 1; }
}

refuses_another_folder() {
    local said
    said=$(cd -- "$workdir/tmp" && unprivileged make --no-print-directory -f "$build/Makefile" 2>&1)
    [[ $said == *"make -C $build/."*Stop. && $said != *$'\n'* ]] || { say "$said" && return 1; }
}

compiles_for_another_server() {
    unprivileged make -C "$build" -n with_llvm=no VERSION=0.1 | grep 'src/module\.cpp' >/dev/null &&
        ! unprivileged make -C "$build" -n with_llvm=no | grep 'src/module\.cpp'
}

# All else is built.
says_what_is_left_out() {
    local said
    said=$(unprivileged make -C "$build" -s with_llvm=no HAS_CLI_HEADERS= 2>&1)
    [[ $said == 'snowflake-shard is left out: '* && $said != *$'\n'* ]] || { say "$said" && return 1; }
}

needs_the_c_library_alone() {
    ! readelf -d "$1" | grep NEEDED | grep -vE 'libc\.so|libm\.so|ld-linux'
}

takes_no_cxx() {
    ! nm -D --undefined-only "$1" | grep -E ' _Z|GLIBCXX|CXXABI'
}

# The C library's symbols have a version, and the linker's begin with an underscore. No minor version of 19 is released.
needs_only_listed_symbols() {
    ((server_version < 19)) || return 0
    nm -D --undefined-only "$1" | awk -v version="$server_version" '
        FNR == NR { if (/^[^#]/ && ($2 == "" || ($2 == "<" ? version < $3 : version >= $3))) listed[$1]; next }
        $2 !~ /@|^_/ && !($2 in listed) { print $2 " is not in test/symbols, which says how to check it"; status = 1 }
        END { exit status }' test/symbols -
}
