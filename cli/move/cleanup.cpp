#include "move/cleanup.h"

#include <thread>

#include "base/output.h"
#include "move/owned.h"
#include "move/transaction.h"
#include "move/waiting.h"

void drop_subscription(Connection& target, const Move& move)
{
    if (find_subscription(target, move).is_own())
        /* Without its slot's name, because the source drops the slot. With it, DROP SUBSCRIPTION
         * would connect to the source, and is not allowed in a transaction block. Only a disabled
         * subscription can lose its slot's name. A kill in between rolls all of it back. */
        target.run(move.sql(R"(
            BEGIN;
            ALTER SUBSCRIPTION @move@ DISABLE;
            ALTER SUBSCRIPTION @move@ SET (slot_name = NONE);
            DROP SUBSCRIPTION @move@;
            COMMIT)"));
}

void drop_slot_and_publication(Connection& source, const Move& move, Clock::time_point deadline)
{
    /* A walsender notices late that its subscriber is dead, and holds the slot. It is asked to end,
     * and ends some time after pg_terminate_backend() has returned: the slot may be in use for some
     * tries. */
    for (;; std::this_thread::sleep_for(std::chrono::milliseconds(100))) {
        try {
            source.query(R"(
                SELECT pg_terminate_backend(active_pid)
                FROM pg_replication_slots WHERE slot_name = $1 AND active)",
                         {move.slot});
            source.query(R"(
                SELECT pg_drop_replication_slot(slot_name)
                FROM pg_replication_slots WHERE slot_name = $1)",
                         {move.slot});
            break;
        } catch (const ServerError&) {
            if (Clock::now() > deadline)
                throw;
        }
    }
    /* One of somebody else is no reason to keep the rest of the move. */
    const Named publication = find_publication(source, move);
    if (!publication.problem.empty())
        warn(publication.problem);
    else if (publication.is_there)
        source.run("DROP PUBLICATION " + move.name);
}

/* DROP SCHEMA CASCADE would drop the triggers, too, but in one transaction that locks every table.
 * The triggers are those of the shard's tables: a trigger of another role can call fence() from a
 * table of its own, a temporary one, too. It goes with the schema, and so does that of a table that
 * has left the shard. to_regnamespace() is NULL for a schema that is gone, so a repeated call does
 * nothing. */
void drop_state(Connection& connection, const Move& move, const Limits& limits)
{
    const Result tables = connection.query(R"(
        SELECT c.oid::regclass FROM pg_trigger JOIN pg_class AS c ON c.oid = tgrelid
        WHERE tgname = 'snowflake_move' AND relnamespace = to_regnamespace($1) AND relkind IN ('r', 'p') ORDER BY 1)",
                                           {move.shard.quoted});
    for (const std::string& table : texts_of(tables)) /* one is locked at a time */
        lock_and_run_naming(connection, limits.deadline(),
                            [&] { connection.run("DROP TRIGGER snowflake_move ON " + table); });
    lock_and_run_naming(connection, limits.deadline(),
                        [&] { connection.run("DROP SCHEMA IF EXISTS " + move.name + " CASCADE"); });
}
