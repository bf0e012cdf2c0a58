/* snowflake-shard verify: problems of each server, and shard numbers that two servers use.
 *
 * An ID carries its shard. So the same ID on two servers is of a shard that is open on both, or of
 * a wrong shard on one of them: it is found without a comparison of the servers' IDs. */

#include <map>

#include "base/output.h"
#include "base/table.h"
#include "fleet/catalog.h"
#include "fleet/children.h"
#include "fleet/closed_everywhere.h"
#include "fleet/findings.h"
#include "fleet/in_transit.h"
#include "fleet/superusers.h"
#include "postgres/citus.h"
#include "postgres/servers.h"
#include "postgres/values.h"
#include "verbs/catalog_findings.h"
#include "verbs/counted_keys.h"
#include "verbs/copies.h"
#include "verbs/other_ids.h"
#include "verbs/verbs.h"

namespace
{

struct Report {
    std::string server;
    std::vector<Shard> shards;
    std::vector<int> settings; /* of snowflake.shard, if they make IDs here */
    std::size_t warnings = 0;  /* of snowflake_check() */
    bool is_all = true;        /* IDs of all shards were looked at */
    std::vector<CountedKey> counted{};
    std::vector<InTransit> moves{};
    /* The hint is the statement or command that mends it, or that shows the facts to decide by. */
    Table findings = {{"finding", "server", "object", "problem", "hint"}, {}};
};

/* The values of snowflake.shard, that of the session and those of roles, where snowflake_next_id()
 * without arguments is called by an object or was called: then it has drawn from its sequence.
 * Without that condition a server that only has the setting, as from a common configuration file,
 * would be a finding. shard_settings() returns NULL for a value that is no shard. */
std::vector<int> read_settings(Connection& connection)
{
    const Result rows = connection.query(R"(
        SELECT DISTINCT shard
        FROM snowflake_internal.shard_settings() CROSS JOIN snowflake_internal.id_seq() AS seq
        WHERE shard IS NOT NULL
          AND ((snowflake_internal.stored_value(seq)).is_called
               OR EXISTS (SELECT FROM snowflake_internal.calls() AS k
                          WHERE k.shard IS NULL AND k.seq = seq.seq)))");
    std::vector<int> settings;
    for (int i = 0; i < rows.rows(); i++)
        settings.push_back(static_cast<int>(rows.number(i, 0)));
    return settings;
}

Report verify_server(Connection& connection, const VerifyOptions& options, Progress& progress)
{
    begin_reading(connection);
    warn_of_citus(connection);
    const std::vector<Shard> shards = read_shards(connection);
    tell_reader_of_superusers_shards(connection, shards);
    Report report = {connection.address().text(), shards, read_settings(connection)};
    const Checks checks = read_checks(connection);
    report.findings.rows = checks.findings;
    report.warnings = checks.warnings;
    OtherIds ids = find_other_ids(connection, shards, options, progress);
    report.findings.rows.insert(report.findings.rows.end(), ids.findings.begin(),
                                ids.findings.end());
    report.is_all = ids.is_all;
    report.counted = find_counted_keys(connection, shards);
    add_rows(report.findings, find_invalid_indexes(connection, shards));
    add_rows(report.findings, find_disabled_keys(connection, shards));
    add_rows(report.findings, find_leftovers(connection));
    for (const OutsideChildren& found : find_outside_children(connection, shards, shards))
        report.findings.rows.push_back(
            {"child", report.server, "schema " + found.shard.schema, found.problem, found.hint});
    report.moves = read_in_transit(connection);
    for (const MoveFinding& found : find_moves(connection))
        report.findings.rows.push_back(
            {found.kind, report.server, found.object, found.problem, found.hint});
    return report;
}

/* A number is in use on a server: "schema insta5" or "the setting snowflake.shard". */
struct Place {
    std::string server;
    std::string maker;
};

/* Two makers on one server are found by snowflake_check(), with the objects. A number that three
 * servers have is a finding on the second and on the third, each with the first. */
void find_number_twice(std::map<int, Place>& places, Report& report, int number,
                       const std::string& maker, const std::string& hint)
{
    const Place& first = places.insert({number, {report.server, maker}}).first->second;
    if (first.server != report.server)
        report.findings.rows.push_back(
            {"shard", report.server, "shard " + std::to_string(number),
             "it is open as " + maker + " here and as " + first.maker + " at " + first.server,
             "Both can make the same IDs. " + hint});
}

void find_numbers_twice(std::vector<Report>& reports)
{
    std::map<int, Place> places;
    for (Report& report : reports) {
        for (const Shard& shard : report.shards)
            find_number_twice(
                places, report, shard.number, "schema " + shard.schema,
                "SELECT * FROM snowflake_sequences WHERE shard = " + std::to_string(shard.number) +
                    "; shows on each server when it made its last ID. Let clients write to one, "
                    "and add to it the rows that only the other has.");
        for (const int setting : report.settings)
            find_number_twice(
                places, report, setting, "the setting snowflake.shard",
                "SELECT * FROM pg_file_settings WHERE name = 'snowflake.shard'; TABLE "
                "pg_db_role_setting; show where it is set. Give each a number of its own: ALTER "
                "SYSTEM SET snowflake.shard = n; on each server, or ALTER DATABASE for databases "
                "of one server.");
    }
}

void find_closed_everywhere(ServerSet& servers, std::vector<Report>& reports)
{
    ShardSet open;
    for (const Report& report : reports)
        for (const Shard& shard : report.shards)
            open.insert(shard.number);
    ClosedEverywhere closed(servers);
    for (Report& report : reports)
        for (const InTransit& one : report.moves)
            if (open.count(one.shard.number) == 0 && closed.has(one))
                report.findings.rows.push_back({"shard", report.server, one.shard.title(),
                                                describe_closed(one), kClosedEverywhere});
}

std::vector<CountedKey> add_up(const std::vector<Report>& reports)
{
    std::map<std::string, CountedKey> keys;
    for (const Report& report : reports)
        for (const CountedKey& key : report.counted) {
            const auto [place, is_new] = keys.emplace(key.column, key);
            if (!is_new)
                place->second.shards += key.shards;
        }
    std::vector<CountedKey> all;
    for (const auto& [column, key] : keys)
        all.push_back(key);
    return all;
}

} // namespace

int verify_shards(const VerifyOptions& options)
{
    ServerSet servers(options.dsns, Access::reads, options.keep_going);
    std::vector<Report> reports;
    {
        /* In a block of its own: its line on the terminal is erased before findings are printed. */
        Progress progress("verify (columns)");
        reports = servers.on_all(
            [&](Connection& connection) { return verify_server(connection, options, progress); });
    }
    /* After all servers, because it compares them. A server that has failed is not in the reports,
     * and the exit code is 3 then. */
    find_numbers_twice(reports);
    find_closed_everywhere(servers, reports);
    warn_of(add_up(reports));
    for (const Report& report : reports)
        if (report.warnings > 0)
            warn(report.server + ": " + count_of(report.warnings, "warning") +
                 " of snowflake_check(), not counted as findings\nHINT:  SELECT * FROM "
                 "snowflake_check() WHERE severity = 'warning';");
    ComparedCopies copies;
    if (options.rows)
        copies = compare_copies(servers);
    std::size_t shards = 0;
    bool is_all = copies.is_all;
    Table all = {reports[0].findings.columns, {}};
    for (const Report& report : reports) {
        shards += report.shards.size();
        is_all = is_all && report.is_all;
        all.rows.insert(all.rows.end(), report.findings.rows.begin(), report.findings.rows.end());
    }
    for (const auto& [server, found] : copies.findings)
        all.rows.push_back({found.kind, server, found.object, found.problem, found.hint});
    print_findings(all, options.json,
                   count_of(shards, "shard") + " on " + count_of(reports.size(), "server"));
    return servers.exit_code(!is_all ? kFailed : all.rows.empty() ? kDone : kFound);
}
