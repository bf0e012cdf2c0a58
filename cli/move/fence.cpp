#include "move/fence.h"

#include "cutover/cutover.h"
#include "cutover/sequences.h"
#include "cutover/waiting.h"
#include "move/other_replication.h"
#include "move/state.h"
#include "sql/sql.h"

/* A table that was made between the publication and the copy of the definition has no rows
 * there. Partitions are published by themselves, and a partitioned table has no rows, so only
 * relkind 'r' is compared. */
void require_published_tables(Connection& source, const Move& move)
{
    const Result tables = source.query(move.fence().sql(R"(
        SELECT oid::regclass FROM @record@.relations
        WHERE relkind = 'r' AND oid NOT IN (
            SELECT prrelid FROM pg_publication_rel JOIN pg_publication AS p ON p.oid = prpubid
            WHERE pubname = $1))"),
                                       {move.name});
    if (tables.rows() > 0)
        throw MustStartAnew("table " + tables.text(0, 0) +
                            " was made during the move, which does not carry it");
}

/* The marker is published. A row of it says that everything before it has been replicated, and
 * carries the positions of the sequences. */
void make_fence(Connection& connection, const Move& move)
{
    make_fence(connection, move.fence(),
               "CREATE TABLE @record@.marker (id uuid PRIMARY KEY, positions jsonb NOT NULL)");
}

namespace
{

void close_to_clients(Connection& target, const Move& move, const std::string& source,
                      const std::string& but_for)
{
    close_tables(target, move.fence(), ", is not open here yet",
                 "It is being moved from " + source + ".", but_for);
}

/* verb: GRANT %s TO, REVOKE %s FROM. This role has the rights as the owner of the record. */
void change_rights(Connection& target, const Move& move, const std::set<std::string>& owners,
                   const std::string& verb, const std::string& preposition)
{
    for (const std::string& owner : owners)
        if (owner != target.user())
            for (const char* const right :
                 {" USAGE ON SCHEMA @move@ ", " EXECUTE ON FUNCTION @move@.leaving() "})
                target.run(move.sql(verb + right) + preposition + " " + target.identifier(owner));
}

} // namespace

/* The rows are written by a session of the table's owner (src/session/), as only the library can
 * begin one. A client that writes by mistake is stopped all the time: a copy has no keys that would
 * refuse its rows, and an interrupted one may wait for days. */
void make_closed_fence(Connection& target, const Move& move, const std::string& source,
                       const std::set<std::string>& owners)
{
    make_fence(target, move);
    close_to_clients(target, move, source,
                     "EXISTS (SELECT FROM pg_catalog.pg_stat_get_activity("
                     "pg_catalog.pg_backend_pid()) AS a WHERE a.backend_type "
                     "OPERATOR(pg_catalog.=) 'snowflake session')");
    change_rights(target, move, owners, "GRANT", "TO");
}

std::string closing_by_owner(const Connection& target, const Move& move)
{
    std::string shards;
    for (const Shard& shard : move.shards)
        shards += (shards.empty() ? "(" : ", (") + target.literal(shard.schema) + ", " +
                  target.literal(shard.title()) + ")";
    std::string sql = move.fence().sql(closing_by_owner_sql);
    const std::string mark = "@shards@";
    for (std::size_t at = 0; (at = sql.find(mark, at)) != std::string::npos; at += shards.size())
        sql.replace(at, mark.size(), shards);
    return sql;
}

/* The apply worker is a replica, which plain triggers do not stop. setval() of sequences that are
 * there would not be rolled back, so they get bounds at once. */
void close_target(Connection& target, const Move& move, const std::set<std::string>& owners)
{
    const Fence fence = move.fence();
    change_rights(target, move, owners, "REVOKE", "FROM");
    for (const std::string& statement : missing_triggers(target, fence, false))
        target.run(statement);
    target.run(fence.sql("SELECT @record@.mark(s) FROM unnest(@record@.sequences_of(true)) AS s"));
}

void end_copy(Connection& target, const Move& move, const std::string& source)
{
    close_to_clients(target, move, source, "false");
}

void raise_fence(Connection& source, Connection& keeper, const Move& move,
                 const std::string& target, Clock::time_point deadline, FenceTry& fence)
{
    /* If a command was killed after this commit, the rest is left. */
    if (!fence.stands) {
        fence.start = Clock::now();
        lock_and_run(source, deadline, [&] {
            /* A crash that loses this commit loses those that follow: the source is open. */
            source.run("SET LOCAL synchronous_commit = off");
            require_published_tables(source, move);
            find_writing_subscriptions(source, move).raise_first();
            close_tables(source, move.fence(), ", has moved", "It is at " + target + " now.");
            write_step(source, move, Step::fenced);
        });
    }
    await_writers_before(source, move.fence(), deadline);
    close_sequences(source, move.fence(), keeper, deadline);
    /* The positions name each sequence as text, with its schema because search_path is empty: OIDs
     * are others on the target. */
    lock_and_run(source, deadline, [&] {
        source.query(move.sql("SELECT @move@.note_closing(true)"));
        const Result marker = source.query(move.sql(R"(
            INSERT INTO @move@.marker
            SELECT gen_random_uuid(), coalesce(jsonb_agg(jsonb_build_object(
                'sequence', sequence::regclass, 'last_value', last_value, 'is_called', is_called)), '[]')
            FROM @move@.positions RETURNING id)"));
        write_step(source, move, Step::fenced, marker.text(0, 0));
        fence.marker = marker.text(0, 0);
    });
}
