#include "cutover/fence.h"

#include "base/interrupt.h"
#include "base/output.h"
#include "cutover/waiting.h"
#include "postgres/trust.h"
#include "sql/sql.h"

namespace
{

void replace_mark(std::string& text, const std::string& mark, const std::string& name)
{
    for (std::size_t at = 0; (at = text.find(mark, at)) != std::string::npos;)
        text.replace(at, mark.size(), name);
}

} // namespace

std::string Fence::sql(std::string text) const
{
    replace_mark(text, "@record@", record);
    replace_mark(text, "@trigger@", trigger);
    return text;
}

/* Firing a trigger takes no privilege, and CREATE OR REPLACE keeps those that are revoked here.
 * ANALYZE: the view of the relations is planned for so many shards. */
void make_fence(Connection& connection, const Fence& fence, const std::string& rest)
{
    connection.run(fence.sql(fence_sql + rest +
                             "; REVOKE EXECUTE ON ALL FUNCTIONS IN SCHEMA @record@ FROM PUBLIC; "
                             "ANALYZE @record@.shards;") +
                   keeping_to_owner(fence.record));
}

std::vector<std::string> missing_triggers(Connection& connection, const Fence& fence, bool always)
{
    return texts_of(connection.query(
        fence.sql("SELECT statement FROM @record@.missing_triggers($1)"), {always ? "A" : "O"}));
}

/* CREATE TRIGGER takes a SHARE ROW EXCLUSIVE lock: it waits for the writers of its table, and later
 * writers wait behind it; readers do not. So each table has a transaction of its own, before the
 * time in which writes are blocked. A table that has its trigger is not locked again. One that was
 * dropped or renamed meanwhile is passed over: require_triggers() looks for it again. */
void make_triggers(Connection& connection, const Fence& fence, Clock::duration patience)
{
    const std::vector<std::string> statements = missing_triggers(connection, fence, true);
    Progress progress("triggers", statements.size());
    for (const std::string& statement : statements) {
        stop_if_interrupted();
        try {
            lock_and_run_naming(connection, Clock::now() + patience, [&] {
                /* If a crash loses it, require_triggers() finds that out. */
                connection.run("SET LOCAL synchronous_commit = off; " + statement);
            });
        } catch (const ServerError& error) {
            if (error.sqlstate != kUndefinedTable)
                throw;
        }
        progress.step();
    }
}

/* Late, because the next try makes the trigger. */
void require_triggers(Connection& connection, const Fence& fence)
{
    const Result tables =
        connection.query(fence.sql("SELECT name FROM @record@.missing_triggers('A')"));
    if (tables.rows() > 0)
        throw Late("table " + tables.text(0, 0) +
                   " has no trigger of the fence that always fires: it was made, or its triggers "
                   "were enabled anew, just now");
}

/* There are two ways to make a row or an ID, and each has a part of the fence: a trigger, and the
 * end of a sequence.
 *
 * A statement on a table fires a trigger FOR EACH STATEMENT before a DEFAULT is computed. The
 * DEFAULTs stay, because to change them would lock readers out. The triggers are made beforehand,
 * and their functions do nothing until set_body() replaces a body: this costs a writer less than a
 * function that reads a row of state, and nobody has to wait for old snapshots. They are ENABLE
 * ALWAYS; pg_restore --disable-triggers ends with ENABLE TRIGGER ALL, which makes them plain ones.
 *
 * No table is locked: transactions over several tables take their locks in any order, and would
 * deadlock with a fence that takes them in one. Nobody writes after the fence all the same. A
 * statement locks its table (ROW EXCLUSIVE) and then reads the invalidations that have been
 * committed by then, so it finds the new body, also in a transaction with an older snapshot,
 * because catalogues are not read with that. A transaction that had locked a table before the body
 * was committed is in pg_locks after it, and await_writers() waits until it has ended. */
void close_tables(Connection& connection, const Fence& fence, const std::string& problem,
                  const std::string& place, const std::string& but_for)
{
    connection.query(fence.sql("SELECT @record@.set_body('leaving', $3, $1, $2)"),
                     {problem, place, but_for});
}

/* Partitioned tables are looked at, too: INSERT locks a partition only when it routes the first row
 * there, after the trigger of the parent. The triggers are looked at afterwards, when the
 * transactions that had made a table have ended: make_triggers() could not see that one. */
void await_writers_before(Connection& connection, const Fence& fence, Clock::time_point deadline)
{
    await_writers(connection, fence.sql("SELECT oid FROM @record@.relations WHERE leaves"),
                  fence.sql("SELECT n.oid FROM @record@.shards JOIN pg_namespace AS n "
                            "ON nspname = schema_name WHERE leaves"),
                  deadline);
    require_triggers(connection, fence);
}
