/* snowflake-shard diff: shards whose definition is not the template's. */

#include <iostream>
#include <sstream>

#include "definition.h"
#include "output.h"
#include "verbs.h"

namespace
{

void print_differences(const Shard& shard, const std::vector<Difference>& differences)
{
    std::cout << "shard " << shard.number << ", schema " << shard.schema << ":\n";
    for (const Difference& difference : differences) {
        std::istringstream lines(difference.sql);
        for (std::string line; std::getline(lines, line);)
            if (!line.empty()) /* between pg_dump's statements */
                std::cout << (difference.is_missing ? "- " : "+ ") << line << "\n";
    }
}

} // namespace

int diff_shards(const Options& options)
{
    Connection connection(options.dsn);
    const Shard origin = find_shard(connection, options.template_schema);
    const Definition definition(connection, origin);
    std::vector<Shard> shards;
    for (const Shard& shard : choose_shards(connection, options.shards))
        if (shard.schema != origin.schema)
            shards.push_back(shard);
    Table table = {{"shard", "schema", "change", "object", "statement"}, {}};
    ShardSet different;
    for (const auto& [shard, differences] : definition.find_different(connection, shards)) {
        different.insert(shard.number);
        for (const auto& [is_missing, object, sql] : differences)
            table.rows.push_back(
                {shard.number, shard.schema, is_missing ? "missing" : "added", object, sql});
        if (!options.json)
            print_differences(shard, differences);
    }
    if (options.json)
        print(table, Format::json);
    else
        std::cout << count_of(shards.size(), "shard") << " compared with " << origin.schema
                  << ", different: " << format_shards(different) << "\n";
    return different.empty() ? kDone : kFound;
}
