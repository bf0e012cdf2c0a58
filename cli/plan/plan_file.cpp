#include "plan/plan_file.h"

#include <set>

#include <nlohmann/json.hpp>

#include "base/failure.h"
#include "base/files.h"
#include "base/shards.h"
#include "postgres/dsn.h"

namespace
{

using nlohmann::json;

std::string text_of(const json& entry, const std::string& key)
{
    /* An empty connection string would be the server of the environment (PGHOST and others). */
    if (!entry.contains(key) || !entry[key].is_string() || entry[key].get<std::string>().empty())
        throw UsageError("\"" + key + "\" is missing, or no text");
    return entry[key].get<std::string>();
}

/* get() cuts a number that is too large for its type, so the range is checked in the largest. */
int number_of(const json& entry)
{
    const json number = entry.value("shard", json());
    if (!number.is_number_unsigned() || number.get<std::uint64_t>() > kMaxShard)
        throw UsageError("\"shard\" is missing, or no number from 0 to " +
                         std::to_string(kMaxShard));
    return number.get<int>();
}

PlanEntry read_entry(const json& entry)
{
    if (!entry.is_object())
        throw UsageError("it is no object");
    for (const std::string side : {"from", "to"})
        check_dsn(text_of(entry, side), "\"" + side + "\"");
    return {number_of(entry), text_of(entry, "schema"), text_of(entry, "from"),
            text_of(entry, "to")};
}

} // namespace

std::vector<PlanEntry> read_plan(const std::string& file)
{
    /* The parser throws no exceptions: a text that is not JSON becomes a value that is no array. */
    const json plan = json::parse(read_given_file(file), nullptr, false);
    if (!plan.is_array())
        throw UsageError("file " + file + " is no plan: snowflake-shard plan --json writes one");
    std::vector<PlanEntry> entries;
    std::set<int> seen;
    for (const json& entry : plan) {
        const std::string where =
            "file " + file + ", entry " + std::to_string(entries.size() + 1) + ": ";
        try {
            entries.push_back(read_entry(entry));
        } catch (const UsageError& error) {
            throw UsageError(where + error.what());
        }
        /* Moves run side by side, so two of one shard have no order. */
        if (!seen.insert(entries.back().number).second)
            throw UsageError(where + "shard " + std::to_string(entries.back().number) +
                             " is there twice");
    }
    return entries;
}
