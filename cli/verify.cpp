/* snowflake-shard verify: no shard twice, every ID its schema's shard, every sequence above its
 * IDs, no ID on two servers. */

#include "verify.h"

#include <iostream>
#include <map>

#include "verbs.h"

namespace
{

struct Place {
    std::size_t server;
    Shard shard;
};

/* How many IDs of a column are on another server, too. They are compared from the largest down, a
 * batch at a time; without --full the first batch is all. */
std::size_t count_common(Connection& here, const IdColumn& a, Connection& there, const IdColumn& b,
                         bool is_full)
{
    constexpr int kBatch = 10000;
    std::size_t common = 0;
    std::string below = "9223372036854775807";
    for (bool is_more = true; is_more;) {
        const Result batch = here.query("SELECT min(id), array_agg(id), count(*) FROM (SELECT " +
                                            a.column + " AS id FROM " + a.table + " WHERE " +
                                            a.column + " < $1::bigint ORDER BY 1 DESC LIMIT " +
                                            std::to_string(kBatch) + ") AS s",
                                        {below});
        if (batch.is_null(0, 0))
            break;
        const Result found = there.query("SELECT count(*) FROM " + b.table + " WHERE " + b.column +
                                             " = ANY ($1::bigint[])",
                                         {batch.text(0, 1)});
        common += static_cast<std::size_t>(found.number(0, 0));
        below = batch.text(0, 0);
        is_more = is_full && batch.number(0, 2) == kBatch;
    }
    return common;
}

/* The tables that a shard has on two servers. */
void compare_places(const VerifyOptions& options, const std::vector<ServerReport>& reports,
                    const Place& a, const Place& b, std::vector<Finding>& findings)
{
    Connection here(options.dsns[a.server]);
    Connection there(options.dsns[b.server]);
    for (const IdColumn& column : reports[a.server].columns)
        for (const IdColumn& other : reports[b.server].columns) {
            const bool is_same = column.schema == a.shard.quoted &&
                                 other.schema == b.shard.quoted && column.column == other.column &&
                                 column.table.substr(column.schema.size()) ==
                                     other.table.substr(other.schema.size());
            const std::size_t common =
                is_same ? count_common(here, column, there, other, options.full) : 0;
            if (common > 0)
                findings.push_back({"id", reports[a.server].server,
                                    column.table + "." + column.column,
                                    count_of(common, "ID") + " also on " + reports[b.server].server,
                                    "Drop the schema on the server that the shard has left."});
        }
}

void find_shards_twice(const VerifyOptions& options, const std::vector<ServerReport>& reports,
                       std::vector<Finding>& findings)
{
    std::map<int, std::vector<Place>> shards;
    for (std::size_t i = 0; i < reports.size(); i++)
        for (const Shard& shard : reports[i].shards)
            shards[shard.number].push_back({i, shard});
    for (const auto& [number, places] : shards)
        for (std::size_t i = 1; i < places.size(); i++) {
            const Place& first = places[0];
            findings.push_back(
                {"shard", reports[places[i].server].server, "shard " + std::to_string(number),
                 "it is schema " + places[i].shard.schema + " here and schema " +
                     first.shard.schema + " at " + reports[first.server].server,
                 "A shard has one schema on one server: drop the one that is not used."});
            if (first.server != places[i].server)
                compare_places(options, reports, first, places[i], findings);
        }
}

std::vector<ServerReport> read_servers(const VerifyOptions& options)
{
    Progress progress("verify (columns)");
    return on_all_servers(options.dsns, [&](Connection& connection, std::size_t) {
        return verify_server(connection, options.full, progress);
    });
}

} // namespace

int verify_shards(const VerifyOptions& options)
{
    const std::vector<ServerReport> reports = read_servers(options);
    std::vector<Finding> findings;
    std::size_t shards = 0;
    for (const ServerReport& report : reports) {
        findings.insert(findings.end(), report.findings.begin(), report.findings.end());
        shards += report.shards.size();
    }
    find_shards_twice(options, reports, findings);

    Table table = {{"finding", "server", "object", "problem", "hint"}, {}};
    for (const Finding& each : findings) {
        table.rows.push_back({each.kind, each.server, each.object, each.problem, each.hint});
        if (!options.json)
            std::cout << each.server << ": " << each.object << ": " << each.problem
                      << "\n    HINT:  " << each.hint << "\n";
    }
    if (options.json)
        print(table, Format::json);
    else
        std::cout << count_of(shards, "shard") << " on " << count_of(reports.size(), "server")
                  << ", " << count_of(findings.size(), "finding") << "\n";
    return findings.empty() ? kDone : kFound;
}
