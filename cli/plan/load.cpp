#include "plan/load.h"

#include <chrono>
#include <thread>

#include "postgres/identity.h"

namespace
{

struct Counter {
    std::string schema;
    std::int64_t count;
};

/* The counters of a server at a moment. */
struct Counters {
    std::string reset;                     /* when they began; empty if they were never reset */
    std::map<std::string, Counter> tables; /* by OID */
};

/* Partitions and not their parents have rows, so nothing counts twice. */
Counters read_counters(Connection& connection, const std::string& by)
{
    const std::string count =
        by == "writes"
            ? "n_tup_ins + n_tup_upd + n_tup_del FROM pg_stat_user_tables"
            : "heap_blks_read + heap_blks_hit + coalesce(idx_blks_read + idx_blks_hit, 0)"
              " + coalesce(toast_blks_read + toast_blks_hit, 0)"
              " + coalesce(tidx_blks_read + tidx_blks_hit, 0) FROM pg_statio_user_tables";
    Counters counters;
    counters.reset = connection
                         .query("SELECT stats_reset FROM pg_stat_database "
                                "WHERE datname = current_database()")
                         .text(0, 0);
    const Result rows = connection.query("SELECT relid, schemaname, " + count);
    for (int i = 0; i < rows.rows(); i++)
        counters.tables[rows.text(i, 0)] = {rows.text(i, 1), rows.number(i, 2)};
    return counters;
}

void require_counting(Connection& connection)
{
    if (identify(connection).is_standby)
        throw Failure(connection.server() +
                      ": it is a standby, which does not count the work of its primary"
                      "\nHINT:  Give the primary.");
    if (connection.query("SHOW track_counts").text(0, 0) == "off")
        throw Failure(connection.server() + ": it counts nothing, because track_counts is off"
                                            "\nHINT:  ALTER SYSTEM SET track_counts = on; SELECT "
                                            "pg_reload_conf();");
}

} // namespace

/* A table that was dropped meanwhile does not count; a new one counts from 0. Counters are thrown
 * away by a crash, too, which only their values show. */
std::map<std::string, std::int64_t> measure_load(Connection& connection, const Sample& sample)
{
    require_counting(connection);
    const Counters before = read_counters(connection, sample.by);
    std::this_thread::sleep_for(std::chrono::duration<double>(sample.seconds));
    const Counters after = read_counters(connection, sample.by);
    bool is_reset = before.reset != after.reset;
    std::map<std::string, std::int64_t> load;
    for (const auto& [table, counter] : after.tables) {
        const auto found = before.tables.find(table);
        const std::int64_t done =
            counter.count - (found == before.tables.end() ? 0 : found->second.count);
        is_reset = is_reset || done < 0;
        load[counter.schema] += done;
    }
    if (is_reset)
        throw Failure(connection.server() +
                      ": its statistics were reset during the measurement: run the command again");
    return load;
}
