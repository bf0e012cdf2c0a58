/* snowflake-shard verify: no shard twice, every ID its schema's shard, every sequence above its
 * IDs, no ID on two servers. */

#include "verify.h"

#include <iostream>
#include <map>

#include "verbs.h"

namespace
{

/* A shard's place: the server's index and the schema. */
struct Place {
    std::size_t server;
    std::string schema;
    std::string quoted;
};

using Places = std::map<int, std::vector<Place>>;

Places places_of(const std::vector<ServerReport>& reports)
{
    Places places;
    for (std::size_t i = 0; i < reports.size(); i++)
        for (const Shard& shard : reports[i].shards)
            places[shard.number].push_back({i, shard.schema, shard.quoted});
    return places;
}

void find_shards_twice(const std::vector<ServerReport>& reports, const Places& places,
                       std::vector<Finding>& findings)
{
    for (const auto& [number, where] : places) {
        if (where.size() < 2)
            continue;
        std::string list;
        for (const Place& place : where)
            list +=
                (list.empty() ? "" : ", ") + place.schema + " at " + reports[place.server].server;
        findings.push_back(
            {"shard", reports[where[0].server].server, "shard " + std::to_string(number),
             "it is there " + count_of(where.size(), "time") + ": " + list,
             "Give each schema a number of its own, or drop the one that was moved away."});
    }
}

/* IDs of a column that are on a second server, too. They are compared from the largest down, a
 * batch at a time; without --full the first batch is the sample. */
class CommonIds
{
public:
    CommonIds(Connection& here, Connection& there, bool is_full)
        : here_(here), there_(there), is_full_(is_full)
    {
    }

    void count(const IdColumn& a, const IdColumn& b)
    {
        std::string below = "9223372036854775807";
        bool is_more = true;
        while (is_more) {
            const Result batch = here_.query(
                "SELECT min(id), array_agg(id), count(*) FROM (SELECT " + a.column +
                    " AS id FROM " + a.qualified_table() + " WHERE " + a.column +
                    " < $1::bigint ORDER BY 1 DESC LIMIT " + std::to_string(kBatch) + ") AS s",
                {below});
            if (batch.is_null(0, 0))
                return;
            const Result common =
                there_.query("SELECT count(*), min(" + b.column + ") FROM " + b.qualified_table() +
                                 " WHERE " + b.column + " = ANY ($1::bigint[])",
                             {batch.text(0, 1)});
            found += static_cast<std::size_t>(common.number(0, 0));
            if (!common.is_null(0, 1))
                example = common.text(0, 1);
            below = batch.text(0, 0);
            is_more = is_full_ && batch.number(0, 2) == kBatch;
        }
    }

    std::size_t found = 0;
    std::string example;

private:
    static constexpr int kBatch = 10000;
    Connection& here_;
    Connection& there_;
    bool is_full_;
};

void compare_places(const VerifyOptions& options, const std::vector<ServerReport>& reports,
                    const Place& here, const Place& there, std::vector<Finding>& findings)
{
    Connection first(options.dsns[here.server]);
    Connection second(options.dsns[there.server]);
    for (const IdColumn& a : reports[here.server].columns)
        for (const IdColumn& b : reports[there.server].columns) {
            if (a.schema != here.quoted || b.schema != there.quoted || a.table != b.table ||
                a.column != b.column)
                continue;
            CommonIds ids(first, second, options.full);
            ids.count(a, b);
            if (ids.found > 0)
                findings.push_back({"id", reports[here.server].server,
                                    a.qualified_table() + "." + a.column,
                                    count_of(ids.found, "ID") + " are also on " +
                                        reports[there.server].server + ", such as " + ids.example,
                                    "Drop the schema on the server that the shard has left."});
        }
}

void find_ids_twice(const VerifyOptions& options, const std::vector<ServerReport>& reports,
                    const Places& places, std::vector<Finding>& findings)
{
    for (const auto& [number, where] : places)
        for (std::size_t i = 0; i < where.size(); i++)
            for (std::size_t j = i + 1; j < where.size(); j++)
                if (where[i].server != where[j].server)
                    compare_places(options, reports, where[i], where[j], findings);
}

void print_findings(const std::vector<Finding>& findings, bool json)
{
    if (json) {
        Table table = {{"finding", "server", "object", "problem", "hint"}, {}};
        for (const Finding& each : findings)
            table.rows.push_back({each.kind, each.server, each.object, each.problem, each.hint});
        return print(table, Format::json);
    }
    for (const Finding& each : findings)
        std::cout << each.server << ": " << each.object << ": " << each.problem
                  << "\n    HINT:  " << each.hint << "\n";
}

} // namespace

int verify_shards(const VerifyOptions& options)
{
    Progress progress("verify (columns)");
    const auto reports = on_all_servers(options.dsns, [&](Connection& connection, std::size_t) {
        return verify_server(connection, options.full, progress);
    });
    std::vector<Finding> findings;
    std::size_t shards = 0;
    for (const ServerReport& report : reports) {
        findings.insert(findings.end(), report.findings.begin(), report.findings.end());
        shards += report.shards.size();
    }
    const Places places = places_of(reports);
    find_shards_twice(reports, places, findings);
    find_ids_twice(options, reports, places, findings);
    print_findings(findings, options.json);
    if (!options.json)
        std::cout << count_of(shards, "shard") << " on " << count_of(reports.size(), "server")
                  << ", " << count_of(findings.size(), "finding") << "\n";
    return findings.empty() ? kDone : kFound;
}
