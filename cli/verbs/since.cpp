#include "verbs/since.h"

#include <iostream>
#include <sstream>

#include <nlohmann/json.hpp>

#include "base/match.h"
#include "base/output.h"

namespace
{

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

/* {"output": "2049:1835021", "complete": 4096} */
bool read_output(const std::string& line, Appended& output)
{
    const auto entry = nlohmann::json::parse(line, nullptr, false);
    if (!entry.is_object() || !entry.contains("output"))
        return false;
    const auto length = entry.value("complete", nlohmann::json());
    if (!entry["output"].is_string() || !length.is_number_unsigned())
        throw UsageError("it is no output and length");
    output = {entry["output"].get<std::string>(), length.get<std::int64_t>()};
    return true;
}

std::map<int, std::int64_t> read_lines(const KeptFile& file, Appended& output)
{
    std::map<int, std::int64_t> read;
    std::istringstream lines(file.read());
    int number = 0;
    for (std::string line; std::getline(lines, line);) {
        number++;
        try {
            if (!read_output(line, output) && !read.insert(read_line(line)).second)
                throw UsageError("the shard is there twice");
        } catch (const UsageError& error) {
            throw UsageError("file " + file.name() + ", line " + std::to_string(number) + ": " +
                             error.what());
        }
    }
    return read;
}

} // namespace

Since::Since(std::string file, double timeout)
    : file_(std::move(file)), timeout_(timeout), read_(read_lines(file_, interrupted_)),
      noted_(read_)
{
}

/* While the file has the length, a run prints, or was ended in it. The file is written here in any
 * case: an error of it comes before the rows. */
void Since::begin_output()
{
    output_ = look_at_output();
    const std::int64_t more = output_.length - interrupted_.length;
    if (!interrupted_.file.empty() && output_.file != interrupted_.file) {
        warn("an earlier run was ended while it printed into another file: the rows behind its "
             "first " +
             std::to_string(interrupted_.length) + " bytes are printed again");
    } else if (!interrupted_.file.empty() && more > 0) {
        cut_output(interrupted_.length);
        warn("an earlier run was ended while it printed: its last " + std::to_string(more) +
             " bytes were cut off the output, and the rows are printed again");
        output_ = look_at_output();
    }
    write(output_);
    if (ends_within_line())
        std::cout << "\n";
}

/* The rows that have come since the sequence was set back are below the ID in the file. */
Span Since::settle(Connection& connection, const Shard& shard, const Source& source) const
{
    const std::int64_t settled = ::settle(connection, shard, source, timeout_);
    const auto found = read_.find(shard.number);
    const std::int64_t first = found == read_.end() ? 0 : found->second;
    if (settled < first)
        throw Failure(
            "file " + file_.name() + " has the ID " + std::to_string(first) +
            ", and the sequences of the shard have reached " + std::to_string(settled) +
            " only: they were set back, or these are other servers"
            "\nHINT:  Rows that have come since would not be read. Give the line of the shard in "
            "the file the last ID from before that, or delete the line to read all rows again.");
    return {first, settled};
}

void Since::begin_rows(const Shard& shard)
{
    const std::lock_guard<std::mutex> lock(noting_);
    begun_.insert(shard.number);
}

void Since::note(const Shard& shard, const Span& span)
{
    const std::lock_guard<std::mutex> lock(noting_);
    begun_.erase(shard.number);
    noted_[shard.number] = span.last;
}

void Since::save()
{
    if (!begun_.empty() && !output_.file.empty())
        return warn("some rows of " + std::string(begun_.size() == 1 ? "shard " : "shards ") +
                    format_shards(begun_) +
                    " were printed before the error: the next run cuts all rows of this one off "
                    "the output, and prints them again");
    try {
        sync_output();
    } catch (const Failure& error) {
        throw Failure(
            std::string(error.what()) +
            "\nThe file of --since is unchanged: the same command prints the rows again.");
    }
    write({});
}

void Since::write(const Appended& output)
{
    std::string text;
    for (const auto& [shard, id] : noted_)
        text +=
            R"({"shard": )" + std::to_string(shard) + R"(, "id": ")" + std::to_string(id) + "\"}\n";
    if (!output.file.empty())
        text += R"({"output": ")" + output.file + R"(", "complete": )" +
                std::to_string(output.length) + "}\n";
    file_.replace(text);
}
