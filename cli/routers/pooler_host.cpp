#include "routers/pooler_host.h"

#include "base/failure.h"
#include "base/files.h"
#include "base/quoting.h"
#include "base/timeouts.h"
#include "postgres/process.h"

namespace
{

/* Others can change the file while it is replaced. */
constexpr int kTries = 5;

/* The scripts have no newline: a quoted one is no POSIX shell's. $f is the file without symbolic
 * links. Text of others, such as a line of [databases], is their standard input or output alone. */

const char* const kFindProblems =
    R"sh(cat "$f" > /dev/null || exit 1; )sh"
    R"sh(test -w "$(dirname "$f")" || { echo "its folder may not be written to" >&2; exit 1; }; )sh"
    R"sh(test -O "$f" || test "$(id -u)" = 0 || { echo "it belongs to another user" >&2; exit 1; }; )sh"
    R"sh(for p in cksum flock stat sync wc; do command -v $p > /dev/null || { echo "there is no program $p" >&2; exit 1; }; done)sh";

/* Does the work of write_scratch() in replacement.cpp. noclobber (-C) makes a file of this user,
 * and follows no link that another user of the folder has put there. The size tells whether all of
 * the text has come. */
std::string write_scratch(const std::string& text)
{
    return R"sh(s=$f.snowflake-shard && rm -f "$s" && (umask 077 && set -C && cat > "$s") && )sh"
           R"sh(test "$(wc -c < "$s")" -eq )sh" +
           std::to_string(text.size()) +
           R"sh( && chown "$(stat -c %u:%g "$f")" "$s" && chmod "$(stat -c %a "$f")" "$s" && sync "$s")sh";
}

/* Locks the folder as LockedFolder does. */
const char* const kLockFolder = R"sh(exec 9< "$(dirname "$f")" && flock 9 && )sh";

} // namespace

std::string PoolerHost::run(const std::string& file, const std::string& script,
                            const std::string& input) const
{
    /* The login shell of the other user can be one that reads another language. */
    const std::string there =
        "sh -c " + shell_quoted("f=$(readlink -f " + shell_quoted(file) +
                                ") && test -f \"$f\" || { echo 'there is no such file' >&2; exit "
                                "1; }; " +
                                script);
    try {
        return run_shell_with(command_ + " " + shell_quoted(there), input,
                              Clock::now() + timeouts::kPoolerFile);
    } catch (const Failure& error) {
        throw Failure(file + ", by " + command_ + ": the command " + error.what());
    }
}

std::string PoolerHost::real_path(const std::string& file) const
{
    if (command_.empty())
        return ::real_path(file);
    return run(file, "printf %s \"$f\"");
}

std::string PoolerHost::read(const std::string& file) const
{
    return command_.empty() ? read_file(file) : run(file, "cat \"$f\"");
}

std::vector<FileProblem> PoolerHost::find_problems(const std::string& file) const
{
    if (command_.empty())
        return ::find_problems(file);
    try {
        run(file, kFindProblems);
        return {};
    } catch (const Failure& error) {
        return {{error.what(),
                 "--config-command must run a script of sh, its last argument, on the machine of "
                 "PgBouncer, without a question, as a user who owns the file and may write to its "
                 "folder."}};
    }
}

void PoolerHost::prepare(const std::string& file, const Edit& edit) const
{
    if (command_.empty())
        return prepare_file(file, edit);
    const std::string text = edit(read(file));
    run(file, kLockFolder + write_scratch(text), text);
    if (run(file, "cat \"$f.snowflake-shard\"") != text)
        throw Failure("the text read from " + file + ".snowflake-shard, by " + command_ +
                      ", differs from the text written to it");
}

/* The sum is computed before the text is read: a file that was changed in between has another sum
 * than the text when it is replaced, and is read again. */
void PoolerHost::replace(const std::string& file, const Edit& edit) const
{
    if (command_.empty())
        return replace_file(file, edit);
    for (int left = kTries; left > 0; left--) {
        const std::string read = run(file, R"(cksum < "$f" && cat "$f")");
        const std::size_t end = read.find('\n');
        const std::string sum = read.substr(0, end);
        const std::string old = end == std::string::npos ? "" : read.substr(end + 1);
        const std::string text = edit(old);
        if (text == old)
            return discard_prepared(file);
        const std::string script = kLockFolder +
                                   ("if test \"$(cksum < \"$f\")\" != " + shell_quoted(sum)) +
                                   "; then echo changed; exit; fi; " + write_scratch(text) +
                                   R"sh( && mv -f "$s" "$f" && sync "$(dirname "$f")")sh";
        if (run(file, script, text).empty())
            return;
    }
    throw Failure(file + ", by " + command_ + ": it was changed again and again");
}

void PoolerHost::discard_prepared(const std::string& file) const
{
    if (command_.empty())
        return ::discard_prepared(file);
    try {
        run(file, R"(rm -f "$f.snowflake-shard")");
    } catch (const Failure&) {
        /* This is no reason to end the command, as on this machine. */
    }
}
