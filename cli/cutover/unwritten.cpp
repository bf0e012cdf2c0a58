#include "cutover/unwritten.h"

#include "base/output.h"
#include "postgres/row_text.h"

namespace
{

void require_closed(Connection& closed, const Fence& fence, bool leaves)
{
    const Result open = closed.query(fence.sql(R"(
        SELECT name, statement FROM @record@.missing_triggers('A') JOIN @record@.relations AS r ON r.oid = name
        WHERE r.leaves = $1::boolean)"),
                                     {leaves ? "true" : "false"});
    if (open.rows() > 0)
        throw Failure(
            closed.server() + ": table " + visible(open.text(0, 0)) +
            " is not closed to every write: its trigger " + fence.trigger +
            " is disabled, was enabled anew, or is gone\nHINT:  " + visible(open.text(0, 1)) +
            "; closes it. The same command then looks for rows that were written.");
}

/* The condition that a row, also one of a catalog, was written after the closing, or by a
 * transaction that had not ended then. It is computed modulo 2^32, as XIDs are compared. The record
 * of a move that version 1.1.0 has closed has no column running. */
std::string later_sql(Connection& closed, const Fence& fence, bool leaves)
{
    const Result range = closed.query(fence.sql(R"(
        SELECT xid::text, pg_snapshot_xmax(pg_current_snapshot())::text::bigint - xid::text::bigint,
               array_to_string(ARRAY(SELECT jsonb_array_elements_text(to_jsonb(c)->'running')), ',')
        FROM @record@.closings AS c WHERE leaves = $1::boolean)"),
                                      {leaves ? "true" : "false"});
    const std::string later =
        "(xmin::text::bigint - " + range.text(0, 0) + ") & 4294967295 < " + range.text(0, 1);
    const std::string running = range.text(0, 2);
    return running.empty() ? later : "(" + later + " OR xmin = ANY ('{" + running + "}'))";
}

/* A row if a table was open: whether its trigger was written, else a subscription has it; and the
 * table. */
Result find_opened(Connection& closed, const Fence& fence, bool leaves, const std::string& later)
{
    return closed.query(fence.sql(R"(
        SELECT is_written, r.oid::regclass
        FROM @record@.relations AS r, LATERAL (
            SELECT true FROM pg_trigger WHERE tgrelid = r.oid AND tgname = '@trigger@' AND )" +
                                  later + R"(
            UNION ALL
            SELECT false FROM pg_subscription_rel WHERE srrelid = r.oid) AS o (is_written)
        WHERE r.relkind IN ('r', 'p') AND r.leaves = $1::boolean
        ORDER BY is_written DESC, 2 LIMIT 1)"),
                        {leaves ? "true" : "false"});
}

/* Reads with the rights of the owners. A policy that would hide rows is an error. */
std::string find_written(Connection& closed, const Fence& fence, bool leaves,
                         const std::string& later)
{
    const Result tables =
        closed.query(fence.sql("SELECT r.oid::regclass, snowflake_internal.told_to(relowner, '')"
                               " FROM @record@.relations AS r JOIN pg_class AS c ON c.oid = r.oid "
                               "WHERE r.relkind = 'r' AND leaves = $1::boolean ORDER BY 1"),
                     {leaves ? "true" : "false"});
    Progress progress("rows of " + closed.server(), static_cast<std::size_t>(tables.rows()));
    std::string written;
    for (int i = 0; i < tables.rows(); i++) {
        const std::string table = tables.text(i, 0);
        const std::string rows = " FROM ONLY " + table + " WHERE " + later;
        closed.run("BEGIN READ ONLY");
        const Result count = read_rows(closed, table, "SELECT count(*)::text" + rows, 1);
        closed.rollback();
        const auto found = static_cast<std::size_t>(count.number(0, 0));
        if (found > 0)
            written += "\n    " + count_of(found, "row") + ": " + visible(tables.text(i, 1)) +
                       "SELECT *" + visible(rows) + ";";
        progress.step();
    }
    return written;
}

} // namespace

void require_unwritten(Connection& closed, const Fence& fence, bool leaves,
                       const std::string& other)
{
    require_closed(closed, fence, leaves);
    const std::string later = later_sql(closed, fence, leaves);
    const Result opened = find_opened(closed, fence, leaves, later);
    if (opened.rows() == 0)
        return;
    const std::string written = find_written(closed, fence, leaves, later);
    if (!written.empty())
        throw Failure(closed.server() +
                      ": rows were written after the shards were closed there, "
                      "and would be dropped:" +
                      written + "\nHINT:  Write those that are missing to " + other +
                      ", and delete them here while the trigger is disabled: BEGIN; ALTER TABLE "
                      "... DISABLE TRIGGER " +
                      fence.trigger + "; DELETE ...; ALTER TABLE ... ENABLE ALWAYS TRIGGER " +
                      fence.trigger + "; COMMIT;");
    if (opened.flag(0, 0))
        warn(closed.server() + ": table " + visible(opened.text(0, 1)) +
             " could be written to for a time after it was closed. No row was inserted or updated "
             "since; deleted rows cannot be seen, and are still on " +
             other);
}
