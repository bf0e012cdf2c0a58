#include "base/shards.h"

#include <sstream>

#include "base/failure.h"
#include "base/match.h"
#include "base/quoting.h"

std::string Shard::title() const
{
    return "shard " + std::to_string(number) + ", schema " + visible(schema);
}

/* Digits are matched before they are converted: stoi() would accept "5x" and fail with an exception
 * of its own for a large number. */
ShardSet parse_shards(const std::string& text)
{
    ShardSet shards;
    std::istringstream list(text);
    for (std::string item; std::getline(list, item, ',');) {
        const auto numbers = match(item, "^([0-9]{1,4})(-([0-9]{1,4}))?$");
        if (numbers.empty())
            throw UsageError("\"" + item + "\" is no shard number or range; a list is 0-7,9");
        const int first = std::stoi(numbers[1]);
        const int last = numbers[3].empty() ? first : std::stoi(numbers[3]);
        if (last < first || last > kMaxShard)
            throw UsageError(item + " is no range of shard numbers, from 0 to " +
                             std::to_string(kMaxShard));
        for (int shard = first; shard <= last; shard++)
            shards.insert(shard);
    }
    if (shards.empty())
        throw UsageError("a list of shards is empty; it looks like 0-7,9");
    return shards;
}

std::string format_shards(const ShardSet& shards)
{
    std::string text;
    for (auto i = shards.begin(); i != shards.end();) {
        const int first = *i;
        int last = first;
        while (++i != shards.end() && *i == last + 1)
            last = *i;
        text += (text.empty() ? "" : ",") + std::to_string(first) +
                (first == last ? "" : "-" + std::to_string(last));
    }
    return text.empty() ? "none" : text;
}

ShardSet numbers_of(const Shards& shards)
{
    ShardSet numbers;
    for (const Shard& shard : shards)
        numbers.insert(shard.number);
    return numbers;
}

std::string short_title_of(const Shards& shards)
{
    return (shards.size() == 1 ? "shard " : "shards ") + format_shards(numbers_of(shards));
}

std::string title_of(const Shards& shards)
{
    return shards.size() == 1 ? shards[0].title() : short_title_of(shards);
}

std::vector<std::string> schemas_in(const Shards& shards)
{
    std::vector<std::string> names;
    for (const Shard& shard : shards)
        names.push_back(shard.schema);
    return names;
}

std::string schemas_of(const Shards& shards)
{
    std::vector<std::string> names;
    for (const Shard& shard : shards)
        names.push_back(shard.quoted);
    return sql_array(names);
}

std::string oids_of(const Shards& shards)
{
    std::vector<std::string> oids;
    for (const Shard& shard : shards)
        oids.push_back(shard.oid);
    return sql_array(oids);
}

std::string schema_name(const std::string& pattern, int shard)
{
    const std::size_t at = pattern.find("{}");
    if (at == std::string::npos)
        throw UsageError("\"" + pattern + "\" needs {} in the place of the shard's number");
    return pattern.substr(0, at) + std::to_string(shard) + pattern.substr(at + 2);
}
