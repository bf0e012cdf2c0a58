#include "fleet/findings.h"

#include "base/output.h"
#include "fleet/closed.h"
#include "fleet/failover.h"
#include "fleet/in_transit.h"
#include "fleet/records.h"
#include "postgres/decoding.h"
#include "postgres/skipped.h"
#include "sql/sql.h"

namespace
{

Result find_broken_following(Connection& connection, const std::string& name)
{
    return connection.query(broken_following_sql, {name});
}

/* A slot can survive a failover of its server from 17 on. If there is no physical slot, no standby
 * is known. to_jsonb(), because earlier versions have no such column. */
Result find_unsafe_slot(Connection& connection, const std::string& name)
{
    return connection.query(R"(
        SELECT CASE WHEN to_jsonb(s)->>'failover' = 'false' THEN 'slot ' || slot_name || ' would not survive a failover of this server'
                    ELSE 'synchronized_standby_slots is empty, so after a failover the other server can have changes that this one has not' END
        FROM pg_replication_slots AS s JOIN pg_database AS d ON datname = current_database()
        WHERE slot_name = format('%s_%s', $1::text, d.oid)
          AND (to_jsonb(s)->>'failover' = 'false' OR current_setting('synchronized_standby_slots', true) = '')
          AND EXISTS (SELECT FROM pg_replication_slots WHERE slot_type = 'physical'))",
                            {name});
}

/* The fingerprint is not the one of the definition that was copied. A function of the role that
 * moves the set computes it. */
bool has_other_definition(Connection& connection, const std::string& name)
{
    const Result may =
        connection.query("SELECT has_function_privilege(p.oid, 'EXECUTE') FROM pg_proc AS p "
                         "JOIN pg_namespace AS n ON n.oid = pronamespace "
                         "WHERE nspname = $1 AND proname = 'fingerprint'",
                         {name});
    if (may.rows() == 0 || !may.flag(0, 0)) {
        warn(connection.server() + ": schema " + name +
             ": the definition is not compared, because only the role of the move may do so");
        return false;
    }
    /* The lock on its table keeps the schema, so that the name leads to no other function. */
    connection.run("BEGIN READ ONLY");
    const std::string noted = read_noted_definition(connection, name);
    const bool is_other =
        !noted.empty() && connection.query("SELECT " + name + ".fingerprint()").text(0, 0) != noted;
    connection.rollback();
    return is_other;
}

std::string kind_of(const InTransit& move)
{
    return move.phase == Phase::held ? "held" : "reverse replication";
}

/* Rows have to be compared since a server has changed. note: the statement that goes on then. */
std::string hint_of_other(const InTransit& move, const std::string& note)
{
    return move.phase == Phase::held
               ? command_of(move, "--hold") + " compares all rows."
               : "verify --rows compares them, and so does --undo before it opens. If they are "
                 "equal: " +
                     note;
}

/* Findings about a set that is held, or about reverse replication. The server that publishes has
 * them: the other one has nothing to report. A standby has the record, but not the slot, so only
 * its primary is asked. */
class Watching
{
public:
    Watching(Connection& connection, const InTransit& move, std::vector<MoveFinding>& findings)
        : connection_(connection), move_(move), findings_(findings)
    {
        if (connection.query("SELECT pg_is_in_recovery()").flag(0, 0))
            return;
        check_following();
        if (move.phase == Phase::held && has_other_definition(connection, move.record))
            add("the definition of " + short_title_of(move.set) +
                    " has changed since it was copied, or its catalogue was written, as by REINDEX "
                    "CONCURRENTLY",
                command_of(move, "--hold") + " compares it, and all rows, again.");
        for (const Obstacle& other : find_other_sender(connection, move.record))
            add(other.problem, hint_of_other(move, other.hint));
        for (const Obstacle& one : find_standby_of_any_name(connection))
            add(one.problem, one.hint);
        const Result unsafe = find_unsafe_slot(connection, move.record);
        for (int i = 0; i < unsafe.rows(); i++)
            add(unsafe.text(i, 0), "See docs/moves.md, \"Failover\".");
    }

private:
    void add(const std::string& problem, const std::string& hint)
    {
        findings_.push_back({kind_of(move_), "schema " + move_.record, problem, hint});
    }

    /* The rows of the other server are of no use then, and this one keeps its WAL for them. */
    void check_following()
    {
        const std::string& name = move_.record;
        const Result broken = find_broken_following(connection_, name);
        for (int i = 0; i < broken.rows(); i++) {
            /* The slot's name is empty if the slot is gone. --complete and --abort connect to both
             * servers, so there are statements for the case that the other one does not exist any
             * more. */
            const std::string slot = broken.text(i, 1);
            add("server " + move_.other.text() + " does not follow " + short_title_of(move_.set) +
                    ": " + broken.text(i, 0),
                "The log of that server says why. " + next_commands(move_) +
                    " If that server is gone for good: " +
                    (slot.empty() ? "" : "SELECT pg_drop_replication_slot('" + slot + "'); ") +
                    "DROP PUBLICATION " + name + "; DROP SCHEMA " + name + " CASCADE;");
        }
    }

    Connection& connection_;
    const InTransit& move_;
    std::vector<MoveFinding>& findings_;
};

/* Findings of the server that follows. */
void check_follower(Connection& connection, const InTransit& move,
                    std::vector<MoveFinding>& findings)
{
    const std::string object = "schema " + move.record;
    for (const Obstacle& skipped : find_skipped(connection, move.record))
        findings.push_back({kind_of(move), object, skipped.problem,
                            "verify --rows compares them. " + skipped.hint});
    for (const Obstacle& one : find_unsubscribed(connection, move.record, move.set))
        findings.push_back({kind_of(move), object, one.problem, one.hint});
    for (const Obstacle& other : find_other_follower(connection, move.record))
        findings.push_back({kind_of(move), object, other.problem, hint_of_other(move, other.hint)});
    for (const Obstacle& one : find_unsynchronized(connection, move.record))
        findings.push_back({kind_of(move), object, one.problem, one.hint});
}

} // namespace

std::vector<MoveFinding> find_moves(Connection& connection)
{
    std::vector<MoveFinding> findings;
    const std::vector<InTransit> shards = read_in_transit(connection);
    check_closed(connection, shards, findings);
    for (const InTransit& one : shards) {
        if (one.kind == InTransit::Kind::split || one.shard.number != one.set.front().number)
            continue;
        const bool follows = one.phase == Phase::held || one.motion() == Motion::reverse;
        if (follows && one.is_source)
            Watching(connection, one, findings);
        else if (follows)
            check_follower(connection, one, findings);
        else if (one.motion() == Motion::moving)
            findings.push_back({"leftover", "schema " + one.record,
                                "a move was interrupted, or is running now: " + one.step,
                                next_commands(one)});
    }
    /* The record decides: on a promoted standby that is not open yet no shard is moving. */
    if (const auto split = read_split(connection); split && split->is_under_way())
        findings.push_back({"leftover", "schema " + kSplitSchema,
                            "a split was interrupted, or is running now: " + text_of(split->step),
                            next_commands(*split)});
    return findings;
}
