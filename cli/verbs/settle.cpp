#include "verbs/settle.h"

#include <algorithm>

#include "base/clock.h"
#include "base/quoting.h"
#include "postgres/sql_text.h"
#include "sql/sql.h"
#include "verbs/in_shard.h"

namespace
{

struct Settled {
    std::int64_t all;  /* of all sequences, the smallest */
    std::int64_t goal; /* the largest, but not ahead of the clock */
};

class Settling
{
public:
    Settling(Connection& connection, const Shard& shard, const Source& source, double timeout)
        : connection_(connection), shard_(shard), source_(source), timeout_(timeout)
    {
    }

    Settled ask();
    void advance(std::int64_t past);

private:
    void begin();

    Connection& connection_;
    const Shard& shard_;
    const Source& source_;
    const double timeout_;
    const Clock::time_point start_ = Clock::now();
};

/* statement_timeout and not lock_timeout: that would count anew for each transaction. 0 would be no
 * timeout. */
void Settling::begin()
{
    const double left = timeout_ - static_cast<double>(milliseconds_since(start_)) / 1000;
    connection_.run("BEGIN ISOLATION LEVEL READ COMMITTED READ WRITE; SET LOCAL "
                    "statement_timeout = " +
                    milliseconds_of(std::max(left, 0.001)));
}

Settled Settling::ask()
{
    begin();
    const Result ids = connection_.query(
        "SELECT min(id), least(max(id), snowflake_internal.min_id(clock_timestamp(), $3::bigint) - "
        "1) FROM (SELECT snowflake_internal.settled_id($1::integer, seq, $3::bigint) AS id "
        "FROM unnest($2::oid[]) AS a (seq)) AS s",
        {std::to_string(shard_.number), source_.sequences, source_.epoch});
    connection_.run("COMMIT");
    return {ids.number(0, 0), ids.number(0, 1)};
}

/* As the owner, because the owner has chosen the sequences: one could count the rows of another
 * role's table. The owner of a table of another role has chosen some, and could set those that only
 * the owner of the schema may. */
void Settling::advance(std::int64_t past)
{
    begin();
    if (!source_.without_right.empty())
        throw Failure("a sequence is behind the others, and is not advanced with the rights of "
                      "the shard's owner: " +
                      visible(source_.without_right) +
                      "\nHINT:  Let it draw from a sequence of the shard.");
    begin_in_shard(connection_, shard_, "BEGIN");
    run_in_session(connection_, "SELECT snowflake_internal.advance(seq, " + std::to_string(past) +
                                    ", " + source_.epoch + ") FROM pg_catalog.unnest(" +
                                    connection_.literal(source_.sequences) +
                                    "::pg_catalog.oid[]) AS a (seq)");
    commit_session(connection_);
    connection_.run("COMMIT");
}

} // namespace

/* The shard, the sequence or the epoch is NULL where it is no constant. */
std::map<std::string, Source> read_sources(Connection& connection)
{
    const Result rows = connection.query(sources_sql);
    std::map<std::string, Source> sources;
    for (int i = 0; i < rows.rows(); i++) {
        Source source = {rows.text(i, 1), rows.text(i, 2), rows.text(i, 6), ""};
        if (rows.text(i, 3) == "t")
            source.problem = "its columns and functions make IDs of several shards, or with "
                             "several epochs: --since reads rows in the order of their IDs";
        if (!rows.is_null(i, 4))
            source.problem = "the shard, the sequence or the epoch is no constant in " +
                             visible(rows.text(i, 4));
        if (!rows.is_null(i, 5))
            source.problem = "the body of " + visible(rows.text(i, 5)) +
                             " is text that names snowflake_next_id(), so its sequence is not "
                             "known\nHINT:  Write it in SQL with RETURN or BEGIN ATOMIC, or let it "
                             "call next_id() of the shard.";
        sources[rows.text(i, 0)] = source;
    }
    return sources;
}

/* A sequence that is not used stays where it is, and later draws from it are above that alone. So
 * sequences that are behind are advanced to the goal first, and it is the result then. In
 * transactions of their own: an advance locks the sequence as a draw does, and two readers would
 * wait for each other. Not ahead of the clock, or the IDs of one sequence could stop the others. */
std::int64_t settle(Connection& connection, const Shard& shard, const Source& source,
                    double timeout)
{
    if (!source.problem.empty())
        throw Failure(source.problem);
    Settling settling(connection, shard, source, timeout);
    try {
        const Settled settled = settling.ask();
        if (settled.all >= settled.goal)
            return settled.all;
        settling.advance(settled.goal);
        return settling.ask().all;
    } catch (const ServerError& error) {
        if (error.sqlstate != kQueryCanceled)
            throw;
        throw Failure("a transaction that has drawn an ID did not end within --settle-timeout"
                      "\nHINT:  SELECT pid, virtualtransaction FROM pg_locks WHERE mode = "
                      "'RowExclusiveLock' AND relation = ANY ('" +
                      source.sequences + "'); shows who. The rows of this shard are not read.");
    }
}
