/* snowflake-shard list: the shards of servers, with their sizes. */

#include <algorithm>
#include <iostream>
#include <map>
#include <optional>

#include "base/output.h"
#include "base/quoting.h"
#include "base/table.h"
#include "fleet/catalog.h"
#include "fleet/closed_everywhere.h"
#include "fleet/in_transit.h"
#include "fleet/sizes.h"
#include "postgres/citus.h"
#include "postgres/servers.h"
#include "postgres/values.h"
#include "verbs/listing.h"
#include "verbs/verbs.h"

namespace
{

/* Shards that a split has left closed are omitted, because the other server lists them. */
std::vector<InTransit> read_listed(Connection& connection)
{
    std::vector<InTransit> listed;
    for (const InTransit& one : read_in_transit(connection))
        if (one.kind == InTransit::Kind::move || one.motion() == Motion::moving)
            listed.push_back(one);
    return listed;
}

/* By record: how far the server that follows this one is behind. The names of slots are those of
 * name_slot(). */
std::map<std::string, std::int64_t> read_lags(Connection& connection)
{
    const Result slots = connection.query(R"(
        SELECT substring(slot_name, '^(.*)_[0-9]+$'), pg_wal_lsn_diff(pg_current_wal_lsn(), confirmed_flush_lsn)::bigint
        FROM pg_replication_slots
        WHERE NOT pg_is_in_recovery() AND database = current_database() AND slot_name ~ '^snowflake_move_[0-9]+_[0-9]+$')");
    std::map<std::string, std::int64_t> lags;
    for (int i = 0; i < slots.rows(); i++)
        lags[slots.text(i, 0)] = slots.number(i, 1);
    return lags;
}

/* Open shards, and those that are closed by a move, if their schema is there: a DROP SCHEMA by hand
 * leaves the record of the move. The first row of VALUES is never a schema: it gives the columns
 * their types, also if there is no move. */
std::string shards_sql(Connection& connection, const std::vector<InTransit>& in_transit)
{
    std::string moves;
    for (const InTransit& one : in_transit)
        moves += ", (" + std::to_string(one.shard.number) + ", " +
                 connection.literal(one.shard.schema) + ")";
    return "SELECT shard, schema_name, schema FROM (" + open_shards_sql(connection) +
           ") AS o UNION SELECT m.*, oid FROM (VALUES (NULL::bigint, NULL::name)" + moves +
           ") AS m (shard, schema_name) JOIN pg_namespace ON nspname = schema_name";
}

/* A shard in transit is one row: where it is open; in the middle of a cutover, where it
 * was closed; else, if the other server is not asked, the closed copy. The next command is
 * that of the server that is shown, or of the closed copy that only it has a record of. */
void show_once(Listing& shards)
{
    const auto rank = [](const Listed& one) {
        return one.is_open() ? 2 : one.transit->is_source ? 1 : 0;
    };
    std::map<std::pair<int, std::string>, Listed*> shown;
    for (Listed& one : shards) {
        const auto [place, is_first] = shown.insert({{one.number, one.schema}, &one});
        Listed*& other = place->second;
        /* Two that are open are not one shard in transit, and verify finds them. */
        if (is_first || (one.is_open() && other->is_open()))
            continue;
        Listed& better = rank(one) > rank(*other) ? one : *other;
        Listed& worse = &better == &one ? *other : one;
        worse.is_hidden = true;
        if (!better.transit) {
            better.transit = worse.transit;
            better.transit->is_open = true;
            better.transit->other = address_of(worse.name);
        }
        other = &better;
    }
}

/* The next command of the record would fail. A server that has failed may have the shard. */
void mark_closed_everywhere(ServerSet& servers, Listing& shards)
{
    if (servers.has_failures())
        return;
    ShardSet open;
    for (const Listed& one : shards)
        if (one.is_open())
            open.insert(one.number);
    ClosedEverywhere closed(servers);
    for (Listed& one : shards)
        if (!one.is_hidden && one.transit && open.count(one.number) == 0 &&
            closed.has(*one.transit)) {
            one.transit->is_closed_everywhere = true;
            warn(one.name + ": " + one.transit->shard.title() + ": " +
                 describe_closed(*one.transit) + "\nHINT:  " + kClosedEverywhere);
        }
}

constexpr std::size_t kOfTransit = 4; /* the last columns, for shards in transit */

/* People see those that have a value. */
void remove_empty_columns(Table& table)
{
    const std::size_t first = table.columns.size() - kOfTransit;
    for (std::size_t i = table.columns.size(); i-- > first;) {
        const auto at = static_cast<std::ptrdiff_t>(i);
        const bool is_empty =
            std::all_of(table.rows.begin(), table.rows.end(),
                        [&](const Row& row) { return row[i].kind == Kind::null; });
        if (!is_empty)
            continue;
        table.columns.erase(table.columns.begin() + at);
        for (Row& row : table.rows)
            row.erase(row.begin() + at);
    }
}

Table table_of(const Listing& shards, bool json)
{
    Table table = {{"shard", "schema", "state", "tables", "rows", "size", "last_id_at", "server",
                    "other", "behind", "compared_at", "next"},
                   {}};
    for (const Listed& one : shards) {
        if (one.is_hidden)
            continue;
        const bool is_in_transit = one.transit.has_value();
        const auto bytes_of = [&](std::optional<std::int64_t> size) {
            return !size ? Value() : json ? Value(*size) : Value(pretty_size(*size));
        };
        Row row = {one.number, one.schema,         one.state(),    one.tables,
                   one.rows,   bytes_of(one.size), one.last_id_at, one.server};
        row.push_back(is_in_transit ? Value(one.transit->other.text()) : Value());
        row.push_back(bytes_of(one.behind));
        row.push_back(is_in_transit ? text_or_null(one.transit->compared_at) : Value());
        row.push_back(is_in_transit ? text_or_null(next_command(*one.transit)) : Value());
        table.rows.push_back(row);
    }
    if (!json)
        remove_empty_columns(table);
    return table;
}

/* Where a terminal would break the rows, the commands stand below the table. */
void print_for_people(Table table, const Totals& totals)
{
    std::string below;
    for (const auto& [server, total] : totals)
        below += visible(server) + ": " + count_of(total.shards, "shard") +
                 (total.size ? ", " + pretty_size(*total.size) : "") + "\n";
    if (table.columns.back() == "next" && is_wider_than_terminal(table)) {
        table.columns.pop_back();
        for (Row& row : table.rows) {
            if (row.back().kind != Kind::null)
                below += "shard " + row[0].text + ", next: " + visible(row.back().text) + "\n";
            row.pop_back();
        }
    }
    print(table, Format::table);
    std::cout << below;
}

/* Rows are the estimate of the last ANALYZE, and unknown before the first. Rows and size are of
 * this server alone, so they are left out where Citus has the rows on another node.
 *
 * A partitioned table is counted once, without its partitions. Its reltuples count their rows
 * again, so only tables with rows are added up; reltuples = -1 is a table that was never
 * analyzed. */
std::string listing_sql(Connection& connection, const std::vector<InTransit>& in_transit)
{
    return "WITH shards AS (" + shards_sql(connection, in_transit) + R"(), last AS (
            SELECT shard, max(last_id_at) AT TIME ZONE 'UTC' AS at
            FROM snowflake_internal.sequences() GROUP BY shard
        ), tables AS (
            SELECT relnamespace AS schema,
                   count(*) FILTER (WHERE NOT relispartition) AS tables,
                   sum(reltuples) FILTER (WHERE relkind = 'r' AND reltuples >= 0)::bigint AS rows
            FROM pg_class WHERE relkind IN ('r', 'p') GROUP BY relnamespace
        ), sizes AS ()" +
           sizes_sql("SELECT schema FROM shards") + "), citus AS (" + citus_nodes_sql(connection) +
           R"()
        SELECT shard, schema_name, coalesce(tables, 0), CASE WHEN node IS NULL THEN rows END,
               CASE WHEN node IS NULL THEN coalesce(size, 0) END,
               to_char(at, 'YYYY-MM-DD"T"HH24:MI:SS.MS"Z"'), (extract(epoch FROM at) * 1000)::bigint,
               coalesce(node || '/' || current_database(), $1::text)
        FROM shards LEFT JOIN last USING (shard)
        LEFT JOIN tables USING (schema)
        LEFT JOIN sizes USING (schema)
        LEFT JOIN citus USING (schema)
        ORDER BY shard, schema_name)";
}

/* The shards of a server. */
Listing read_listing(Connection& connection)
{
    warn_of_citus(connection);
    warn_of_unread_records(connection);
    const std::string name = connection.address().text();
    const std::vector<InTransit> in_transit = read_listed(connection);
    const Result result = connection.query(listing_sql(connection, in_transit), {name});
    const std::vector<Column> columns = columns_of(result);
    const auto lags = read_lags(connection);
    Listing shards;
    for (int i = 0; i < result.rows(); i++) {
        const Row row = row_of(result, i, columns);
        const auto number_of = [&](int column) {
            return result.is_null(i, column) ? std::optional<std::int64_t>()
                                             : result.number(i, column);
        };
        Listed one = {static_cast<int>(result.number(i, 0)),
                      result.text(i, 1),
                      row[2],
                      row[3],
                      number_of(4),
                      row[5],
                      number_of(6),
                      result.text(i, 7),
                      {},
                      name};
        for (const InTransit& transit : in_transit)
            if (transit.shard.number == one.number && transit.shard.schema == one.schema)
                one.transit = transit;
        if (one.transit && lags.count(one.transit->record) > 0)
            one.behind = lags.at(one.transit->record);
        shards.push_back(one);
    }
    return shards;
}

} // namespace

int list_shards(const ListOptions& options)
{
    /* Always goes on without a server that fails: the rows of the others are right by themselves.
     * The exit code is 3. */
    ServerSet servers(options.dsns, Access::reads, true);
    Listing all;
    for (const Listing& shards : servers.on_all(read_listing))
        all.insert(all.end(), shards.begin(), shards.end());
    show_once(all);
    mark_closed_everywhere(servers, all);
    std::vector<std::string> names;
    for (std::size_t i = 0; i < servers.size(); i++)
        names.push_back(servers[i].connection.address().text());
    const Totals totals = totals_of(all, names);
    if (options.json || options.format == "json")
        print(table_of(all, true), Format::json);
    else if (options.format == "prometheus")
        print_metrics(all, totals);
    else
        print_for_people(table_of(all, false), totals);
    return servers.exit_code(kDone);
}
