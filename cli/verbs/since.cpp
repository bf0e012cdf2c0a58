#include "verbs/since.h"

#include <cerrno>
#include <fstream>
#include <iostream>
#include <sstream>

#include <nlohmann/json.hpp>

#include <sys/stat.h>
#include <unistd.h>

#include "base/match.h"
#include "postgres/sql_text.h"

namespace
{

const std::string kQueryCanceled = "57014";

/* {"shard": 5, "id": "4037526336695178243"}. Text, because programs that read JSON may keep fewer
 * digits of a number. */
std::pair<int, std::int64_t> read_line(const std::string& line)
{
    const auto entry = nlohmann::json::parse(line, nullptr, false);
    const auto shard = entry.is_object() ? entry.value("shard", nlohmann::json()) : entry;
    const auto id = entry.is_object() ? entry.value("id", nlohmann::json()) : entry;
    if (!shard.is_number_unsigned() || shard.get<std::uint64_t>() > kMaxShard || !id.is_string() ||
        match(id.get<std::string>(), "^[0-9]{1,18}$|^[1-8][0-9]{18}$|^9[01][0-9]{17}$").empty())
        throw UsageError("it is no shard and ID");
    return {shard.get<int>(), std::stoll(id.get<std::string>())};
}

std::map<int, std::int64_t> read_lines(const KeptFile& file)
{
    std::map<int, std::int64_t> read;
    std::istringstream lines(file.read());
    int number = 0;
    for (std::string line; std::getline(lines, line);) {
        number++;
        try {
            if (!read.insert(read_line(line)).second)
                throw UsageError("the shard is there twice");
        } catch (const UsageError& error) {
            throw UsageError("file " + file.name() + ", line " + std::to_string(number) + ": " +
                             error.what());
        }
    }
    return read;
}

/* Of the standard output, which can be open for writing alone. */
bool ends_within_line()
{
    struct stat status;
    if (fstat(STDOUT_FILENO, &status) != 0 || !S_ISREG(status.st_mode) || status.st_size == 0)
        return false;
    std::ifstream written("/proc/self/fd/1");
    written.seekg(-1, std::ios::end);
    return written.get() != '\n';
}

/* A pipe and a terminal cannot be synced (EINVAL). */
void sync_output()
{
    std::cout << std::flush;
    if (!std::cout || (fsync(STDOUT_FILENO) != 0 && errno != EINVAL && errno != EROFS))
        throw Failure(
            "the output cannot be written: " + std::generic_category().message(errno) +
            "\nThe file of --since is unchanged: the same command prints the rows again.");
}

} // namespace

std::map<std::string, Source> read_sources(Connection& connection)
{
    const Result rows =
        connection.query("SELECT schema, seq::oid, epoch_ms FROM snowflake_internal.shards()");
    std::map<std::string, Source> sources;
    for (int i = 0; i < rows.rows(); i++) {
        Source& source = sources[rows.text(i, 0)];
        const bool is_second = !source.epoch.empty();
        source = {rows.text(i, 1), rows.text(i, 2), ""};
        if (is_second || source.sequence.empty() || source.epoch.empty())
            source.problem =
                "its IDs come from several sequences, or with several epochs: --since reads "
                "the rows of one sequence in their order";
    }
    return sources;
}

Since::Since(std::string file, double timeout)
    : file_(std::move(file)), timeout_(timeout), read_(read_lines(file_)), noted_(read_)
{
}

void Since::begin_output()
{
    if (ends_within_line())
        std::cout << "\n";
}

/* statement_timeout and not lock_timeout: that would count anew for each transaction. */
Span Since::settle(Connection& connection, const Shard& shard, const Source& source) const
{
    if (!source.problem.empty())
        throw Failure(source.problem);
    const auto found = read_.find(shard.number);
    const std::int64_t first = found == read_.end() ? 0 : found->second;
    connection.run("BEGIN ISOLATION LEVEL READ COMMITTED; SET LOCAL statement_timeout = " +
                   milliseconds_of(timeout_));
    try {
        const Result settled = connection.query(
            "SELECT snowflake_internal.settled_id($1::integer, $2::oid, $3::bigint)",
            {std::to_string(shard.number), source.sequence, source.epoch});
        connection.run("COMMIT");
        return {first, std::max(first, settled.number(0, 0))};
    } catch (const ServerError& error) {
        if (error.sqlstate != kQueryCanceled)
            throw;
        throw Failure("a transaction that has drawn an ID did not end within --settle-timeout"
                      "\nHINT:  SELECT pid, virtualtransaction FROM pg_locks WHERE mode = "
                      "'RowExclusiveLock' AND relation = " +
                      source.sequence + "; shows who. The rows of this shard are not read.");
    }
}

void Since::note(const Shard& shard, const Span& span)
{
    const std::lock_guard<std::mutex> lock(noting_);
    noted_[shard.number] = span.last;
}

void Since::save()
{
    sync_output();
    std::string text;
    for (const auto& [shard, id] : noted_)
        text +=
            R"({"shard": )" + std::to_string(shard) + R"(, "id": ")" + std::to_string(id) + "\"}\n";
    file_.replace(text);
}
