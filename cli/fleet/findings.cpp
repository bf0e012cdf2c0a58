#include "fleet/findings.h"
#include "fleet/in_transit.h"
#include "fleet/records.h"

namespace
{

/* A row if the other server does not follow, or is far behind. The name is that of name_slot().
 * LEFT JOIN, because a slot that is gone is a finding. wal_status = 'lost' is looked at before
 * active, because nobody can read such a slot; 'unreserved' says that the next checkpoint can
 * remove WAL that it needs. */
Result find_broken_reverse(Connection& connection, const std::string& name)
{
    return connection.query(R"(
        SELECT problem, slot_name
        FROM (SELECT format('%s_%s', $1::text, oid) AS name FROM pg_database WHERE datname = current_database()) AS n
        LEFT JOIN pg_replication_slots AS s ON s.slot_name = name
        CROSS JOIN LATERAL (
            SELECT CASE WHEN slot_name IS NULL THEN 'slot ' || name || ' is gone'
                        WHEN wal_status = 'lost' THEN 'slot ' || name || ' has lost WAL'
                        WHEN NOT active THEN 'it does not read slot ' || name
                        WHEN wal_status = 'unreserved' OR behind > 1e9
                            THEN 'it is behind by ' || pg_size_pretty(behind) END
            FROM pg_wal_lsn_diff(pg_current_wal_lsn(), confirmed_flush_lsn) AS behind) AS p (problem)
        WHERE problem IS NOT NULL)",
                            {name});
}

/* The rows of the other server are of no use then, and this one keeps its WAL for them. A standby
 * has the record, but not the slot: its primary alone is asked. */
void check_reverse(Connection& connection, const InTransit& move,
                   std::vector<MoveFinding>& findings)
{
    if (connection.query("SELECT pg_is_in_recovery()").flag(0, 0))
        return;
    const std::string& name = move.record;
    const Result broken = find_broken_reverse(connection, name);
    for (int i = 0; i < broken.rows(); i++) {
        /* Empty if the slot is gone. --complete connects to both servers, so there are
         * statements for the case that the other one does not exist any more. */
        const std::string slot = broken.text(i, 1);
        findings.push_back(
            {"reverse replication", "schema " + name,
             "server " + move.other.text() + " does not follow " + short_title_of(move.set) + ": " +
                 broken.text(i, 0),
             "The log of that server says why. " + next_commands(move) +
                 " If that server is gone for good: " +
                 (slot.empty() ? "" : "SELECT pg_drop_replication_slot('" + slot + "'); ") +
                 "DROP PUBLICATION " + name + "; DROP SCHEMA " + name + " CASCADE;"});
    }
}

} // namespace

std::vector<MoveFinding> find_moves(Connection& connection)
{
    std::vector<MoveFinding> findings;
    for (const InTransit& one : read_in_transit(connection)) {
        if (one.kind == InTransit::Kind::split || one.shard.number != one.set.front().number)
            continue;
        /* Both servers have a record of reverse replication. The one that publishes has the slot,
         * and is asked; the other one has nothing to tell. */
        if (one.motion() == Motion::reverse && one.is_source)
            check_reverse(connection, one, findings);
        else if (one.motion() == Motion::moving)
            findings.push_back({"leftover", "schema " + one.record,
                                "a move was interrupted, or is running now: " + one.step,
                                next_commands(one)});
    }
    /* By its record: on a promoted standby that is not open yet no shard is moving. */
    if (const auto split = read_split(connection); split && split->is_under_way())
        findings.push_back({"leftover", "schema " + kSplitSchema,
                            "a split was interrupted, or is running now: " + text_of(split->step),
                            next_commands(*split)});
    return findings;
}
