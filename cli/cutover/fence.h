/* The fence of a move and of a split: while it stands, nobody makes a row or an ID. Readers are not
 * blocked. Its SQL is sql/fence.sql; sequences.h closes the sequences. */

#pragma once

#include <string>
#include <vector>

#include "base/clock.h"
#include "postgres/connection.h"

struct Fence {
    std::string record;  /* a schema; its table shards names the schemas that are closed */
    std::string trigger; /* the name of the triggers */

    /* Puts these in the places of @record@ and @trigger@. */
    std::string sql(std::string text) const;
};

/* Puts the fence into its schema, in a transaction of the caller, and keeps the schema to its
 * owner. It does not stand yet. rest: more statements of the record, which may use it. */
void make_fence(Connection& connection, const Fence& fence, const std::string& rest);

/* The statements that make the triggers of tables that have none, one for each table. always:
 * ENABLE ALWAYS, which stops a session with session_replication_role = replica, too. A trigger that
 * fires otherwise is made anew. */
std::vector<std::string> missing_triggers(Connection& connection, const Fence& fence, bool always);
/* Makes those with ENABLE ALWAYS beforehand, one at a time, while clients write. Late if others
 * lock a table for longer than that; it may be repeated. */
void make_triggers(Connection& connection, const Fence& fence, Clock::duration patience);
/* Late if one is missing. In a catalogue of thousands of shards it takes tens of milliseconds, so a
 * split calls it before clients are held, too. */
void require_triggers(Connection& connection, const Fence& fence);

/* Closes the tables of the shards that leave, for every statement that begins after the COMMIT. A
 * client gets the title of its shard with the problem as an error, and the place as its detail.
 * but_for: a condition of SQL on statements that are not stopped. */
void close_tables(Connection& connection, const Fence& fence, const std::string& problem,
                  const std::string& place, const std::string& but_for = "false");
/* Returns when the transactions have ended that began to write before the COMMIT of close_tables().
 * Late if one has not, or if a table has no trigger. */
void await_writers_before(Connection& connection, const Fence& fence, Clock::time_point deadline);
