#include "split/fence.h"

#include "move/replication.h"
#include "move/transaction.h"
#include "move/writers.h"
#include "output.h"

namespace
{

/* There are two ways to make a row or an ID, and each has a part of the fence.
 *
 * A statement on a table fires a trigger FOR EACH STATEMENT before a DEFAULT is computed. It is
 * made beforehand on every table, and ENABLE ALWAYS, so that it fires in a replica session, too.
 * Two functions, leaving() and staying(), do nothing while they wait: this costs a writer less than
 * one that reads a row of state, and nobody has to wait for old snapshots. close() replaces their
 * bodies. Why no statement misses that is said in move/fence.cpp.
 *
 * A direct draw reads no table. setval() to the end of a sequence leaves no value to nextval(), and
 * to snowflake_next_id() none of any epoch, whatever snowflake.max_drift is. It costs a tenth of
 * ALTER SEQUENCE, which makes a new file, and it is one statement for hundreds of them. It is not
 * rolled back, though. So the position is committed by another session, while this one holds a lock
 * that keeps everybody from drawing: SET LOGGED takes one, and does nothing to a sequence that is
 * logged. setval() comes behind that. ALTER SEQUENCE follows when clients write again.
 *
 * The standby has the same state by the WAL, so it is closed from the moment of its promotion: for
 * the shards that leave because their closing is older than the seal, and for those that stay
 * because the body of staying(), as close() writes it, lets write on one timeline alone. A promoted
 * server has another. Direct draws there meet default_transaction_read_only, see standby.h. */
const char* const kFence = R"sql(
CREATE SCHEMA snowflake_split;
CREATE TABLE snowflake_split.state (
    id uuid NOT NULL DEFAULT gen_random_uuid(),
    old_server text NOT NULL,
    new_server text NOT NULL,
    step text NOT NULL DEFAULT 'prepared',
    is_new boolean NOT NULL DEFAULT false,
    timeline text,
    seal uuid,
    standby_start text);
CREATE TABLE snowflake_split.shards (shard integer NOT NULL, schema_name name PRIMARY KEY, leaves boolean NOT NULL);
-- Where the sequences of the shards that leave have ended.
CREATE TABLE snowflake_split.positions (sequence oid PRIMARY KEY, last_value bigint NOT NULL, is_called boolean NOT NULL, cycles boolean NOT NULL);
-- Of the sequences that mark() has changed.
CREATE TABLE snowflake_split.bounds (sequence oid PRIMARY KEY, low bigint NOT NULL, high bigint NOT NULL, start bigint NOT NULL);
CREATE VIEW snowflake_split.sequences AS
    SELECT c.oid AS sequence, s.leaves, CASE WHEN q.seqincrement > 0 THEN q.seqmax ELSE q.seqmin END AS last, q.seqincrement > 0 AS is_up,
           q.seqcycle AS cycles, q.seqmin = q.seqmax - 1 AS is_marked
    FROM snowflake_split.shards AS s
    JOIN pg_catalog.pg_namespace AS n ON n.nspname = s.schema_name
    JOIN pg_catalog.pg_class AS c ON c.relnamespace = n.oid
    JOIN pg_catalog.pg_sequence AS q ON q.seqrelid = c.oid;
-- verify, list and map may be run by any role.
GRANT USAGE ON SCHEMA snowflake_split TO PUBLIC;
GRANT SELECT ON snowflake_split.state, snowflake_split.shards TO PUBLIC;

CREATE FUNCTION snowflake_split.leaving() RETURNS trigger LANGUAGE plpgsql AS 'BEGIN RETURN NULL; END';
CREATE FUNCTION snowflake_split.staying() RETURNS trigger LANGUAGE plpgsql AS 'BEGIN RETURN NULL; END';

-- The argument of a trigger is the title of its shard.
CREATE FUNCTION snowflake_split.set_body(side text, condition text, problem text, place text) RETURNS void
    LANGUAGE plpgsql SET search_path = '' AS $$
BEGIN
    EXECUTE format('CREATE OR REPLACE FUNCTION snowflake_split.%I() RETURNS trigger LANGUAGE plpgsql AS %L', side,
        format('BEGIN IF %s THEN RETURN NULL; END IF; RAISE EXCEPTION USING ERRCODE = ''read_only_sql_transaction'', '
               'MESSAGE = pg_catalog.concat(TG_ARGV[0], %L), DETAIL = %L; END', condition, problem, place));
END $$;
CREATE FUNCTION snowflake_split.open_side(side text) RETURNS void LANGUAGE plpgsql SET search_path = '' AS $$
BEGIN
    EXECUTE format('CREATE OR REPLACE FUNCTION snowflake_split.%I() RETURNS trigger LANGUAGE plpgsql AS ''BEGIN RETURN NULL; END''', side);
END $$;

CREATE FUNCTION snowflake_split.close() RETURNS void LANGUAGE plpgsql SET search_path = '' AS $$
DECLARE
    own CONSTANT snowflake_split.state := (SELECT s FROM snowflake_split.state AS s);
    home CONSTANT text := left(pg_walfile_name(pg_current_wal_lsn()), 8);
BEGIN
    PERFORM snowflake_split.set_body('leaving', 'false', ', has moved', format('It is at %s now.', own.new_server));
    PERFORM snowflake_split.set_body('staying', format('pg_catalog.substr(pg_catalog.pg_walfile_name(pg_catalog.pg_current_wal_lsn()), 1, 8) '
                                                       'OPERATOR(pg_catalog.=) %L', home),
                                     ', is not open here', format('It was at %s when the server was split.', own.old_server));
    UPDATE snowflake_split.state SET step = 'closed', timeline = home, seal = NULL, standby_start = NULL;
END $$;

-- How far they have been drawn. at_end: such a sequence is closed already, and its position is kept.
CREATE FUNCTION snowflake_split.read_sequences(wanted oid[], OUT sequences oid[], OUT last_values bigint[], OUT are_called boolean[],
                                               OUT cycle boolean[], OUT at_end boolean[])
    LANGUAGE sql SET search_path = '' AS $$
    SELECT array_agg(s.sequence), array_agg(v.last_value), array_agg(v.is_called), array_agg(s.cycles),
           array_agg(v.last_value = s.last AND v.is_called AND NOT s.cycles)
    FROM snowflake_split.sequences AS s CROSS JOIN LATERAL snowflake_internal.stored_value(s.sequence) AS v
    WHERE s.sequence = ANY (wanted)
$$;
CREATE FUNCTION snowflake_split.lock_sequences(wanted oid[]) RETURNS void LANGUAGE plpgsql SET search_path = '' AS $$
DECLARE
    object regclass;
BEGIN
    FOREACH object IN ARRAY wanted LOOP
        EXECUTE format('ALTER SEQUENCE %s SET LOGGED', object);
    END LOOP;
END $$;
CREATE FUNCTION snowflake_split.keep_positions(sequences oid[], last_values bigint[], are_called boolean[], cycle boolean[], at_end boolean[])
    RETURNS void LANGUAGE sql SET search_path = '' AS $$
    MERGE INTO snowflake_split.positions AS p
    USING unnest(sequences, last_values, are_called, cycle, at_end) AS r (sequence, last_value, is_called, cycles, at_end)
    ON p.sequence = r.sequence
    WHEN MATCHED AND NOT r.at_end THEN UPDATE SET last_value = r.last_value, is_called = r.is_called, cycles = r.cycles
    WHEN MATCHED THEN DO NOTHING
    WHEN NOT MATCHED THEN INSERT VALUES (r.sequence, r.last_value, r.is_called, r.cycles)
$$;
CREATE FUNCTION snowflake_split.end_sequences(wanted oid[]) RETURNS void LANGUAGE plpgsql SET search_path = '' AS $$
DECLARE
    object regclass;
BEGIN
    FOR object IN SELECT s.sequence FROM snowflake_split.sequences AS s WHERE s.cycles AND s.sequence = ANY (wanted) LOOP
        EXECUTE format('ALTER SEQUENCE %s NO CYCLE', object);
    END LOOP;
    PERFORM setval(s.sequence, s.last, true) FROM snowflake_split.sequences AS s WHERE s.sequence = ANY (wanted);
END $$;
CREATE FUNCTION snowflake_split.release_sequences() RETURNS void LANGUAGE plpgsql SET search_path = '' AS $$
DECLARE
    marked record;
    object regclass;
BEGIN
    FOR marked IN
        SELECT b.*, s.is_up FROM snowflake_split.bounds AS b JOIN snowflake_split.positions AS p ON p.sequence = b.sequence
        JOIN snowflake_split.sequences AS s ON s.sequence = b.sequence
    LOOP
        EXECUTE format('ALTER SEQUENCE %s MINVALUE %s MAXVALUE %s START %s RESTART', marked.sequence::regclass, marked.low, marked.high, marked.start);
        PERFORM setval(marked.sequence, CASE WHEN marked.is_up THEN marked.high ELSE marked.low END, true);
        DELETE FROM snowflake_split.bounds AS b WHERE b.sequence = marked.sequence;
    END LOOP;
    FOR object IN SELECT p.sequence FROM snowflake_split.positions AS p WHERE p.cycles LOOP
        EXECUTE format('ALTER SEQUENCE %s CYCLE', object);
    END LOOP;
    PERFORM setval(s.sequence, p.last_value, p.is_called)
    FROM snowflake_split.positions AS p JOIN snowflake_split.sequences AS s ON s.sequence = p.sequence
    CROSS JOIN LATERAL snowflake_internal.stored_value(s.sequence) AS v
    WHERE v.last_value = s.last AND v.is_called;
END $$;

-- Undoes close() on the old server.
CREATE FUNCTION snowflake_split.reopen() RETURNS void LANGUAGE plpgsql SET search_path = '' AS $$
BEGIN
    PERFORM snowflake_split.release_sequences();
    PERFORM snowflake_split.open_side('leaving'), snowflake_split.open_side('staying');
    DELETE FROM snowflake_split.positions;
    UPDATE snowflake_split.state SET step = 'prepared', timeline = NULL, seal = NULL, standby_start = NULL;
END $$;

-- On the server that was promoted: it has the shards that have left from now on, and no others.
CREATE FUNCTION snowflake_split.open() RETURNS void LANGUAGE plpgsql SET search_path = '' AS $$
DECLARE
    own CONSTANT snowflake_split.state := (SELECT s FROM snowflake_split.state AS s);
BEGIN
    PERFORM snowflake_split.set_body('staying', 'false', ', has stayed', format('It is at %s.', own.old_server));
    PERFORM snowflake_split.end_sequences((SELECT array_agg(s.sequence) FROM snowflake_split.sequences AS s WHERE NOT s.leaves));
    PERFORM snowflake_split.release_sequences();
    PERFORM snowflake_split.open_side('leaving');
    UPDATE snowflake_split.state SET step = 'split', is_new = true;
END $$;

-- On the old server, when the other one is open: what stays is open on any timeline.
CREATE FUNCTION snowflake_split.stay() RETURNS void LANGUAGE plpgsql SET search_path = '' AS $$
BEGIN
    PERFORM snowflake_split.open_side('staying');
    UPDATE snowflake_split.state SET step = 'split';
END $$;

-- Two values, the last of which is drawn, as a move leaves them.
CREATE FUNCTION snowflake_split.mark(object regclass) RETURNS void LANGUAGE plpgsql SET search_path = '' AS $$
DECLARE
    is_up CONSTANT boolean := (SELECT s.is_up FROM snowflake_split.sequences AS s WHERE s.sequence = object);
BEGIN
    INSERT INTO snowflake_split.bounds SELECT q.seqrelid, q.seqmin, q.seqmax, q.seqstart FROM pg_sequence AS q WHERE q.seqrelid = object;
    EXECUTE format('ALTER SEQUENCE %s MINVALUE 1 MAXVALUE 2 START 1 RESTART', object);
    PERFORM setval(object, CASE WHEN is_up THEN 2 ELSE 1 END, true);
END $$;
)sql";

const std::string kTables = R"(
    SELECT c.oid, s.leaves, format('shard %s, schema %s', s.shard, s.schema_name) AS title
    FROM snowflake_split.shards AS s
    JOIN pg_namespace AS n ON n.nspname = s.schema_name
    JOIN pg_class AS c ON c.relnamespace = n.oid
    WHERE c.relkind IN ('r', 'p'))";

const std::string kTablesWithoutTrigger =
    "SELECT oid::regclass, leaves, title FROM (" + kTables + R"() AS t
     WHERE NOT EXISTS (SELECT FROM pg_trigger WHERE tgrelid = t.oid AND tgname = 'snowflake_split' AND tgenabled = 'A')
     ORDER BY t.oid)";

/* As many as fit into the lock table of a server with few connections. */
constexpr std::size_t kBatch = 500;

void require_triggers(Connection& old)
{
    const Result tables = old.query(kTablesWithoutTrigger);
    if (tables.rows() > 0)
        throw Late("table " + tables.text(0, 0) + " was made just now, and nothing closes it");
}

std::string as_array(const std::vector<std::string>& texts, std::size_t begin, std::size_t end)
{
    std::string array;
    for (std::size_t i = begin; i < end; i++)
        array += (array.empty() ? "" : ",") + texts[i];
    return "{" + array + "}";
}

} // namespace

void make_split(Connection& old, const std::string& new_server,
                const std::vector<SplitShard>& shards)
{
    old.run(kFence);
    old.query("INSERT INTO snowflake_split.state (old_server, new_server) VALUES ($1, $2)",
              {old.server(), new_server});
    std::string rows;
    for (const SplitShard& shard : shards)
        rows += (rows.empty() ? "(" : ", (") + std::to_string(shard.number) + ", " +
                old.literal(shard.schema) + ", " + (shard.leaves ? "true)" : "false)");
    old.run("INSERT INTO snowflake_split.shards VALUES " + rows);
}

void make_triggers(Connection& old)
{
    const Result tables = old.query(kTablesWithoutTrigger);
    Progress progress("triggers", static_cast<std::size_t>(tables.rows()));
    for (int i = 0; i < tables.rows(); i++, progress.step()) {
        stop_if_interrupted();
        const std::string table = tables.text(i, 0);
        const std::string statement =
            "CREATE OR REPLACE TRIGGER snowflake_split BEFORE INSERT OR UPDATE OR DELETE OR "
            "TRUNCATE ON " +
            table + " FOR EACH STATEMENT EXECUTE FUNCTION snowflake_split." +
            (tables.flag(i, 1) ? "leaving(" : "staying(") + old.literal(tables.text(i, 2)) +
            "); ALTER TABLE ONLY " + table + " ENABLE ALWAYS TRIGGER snowflake_split";
        try {
            lock_and_run(old, Clock::now() + std::chrono::minutes(1), [&] {
                /* close_shards() looks whether a crash has lost one. */
                old.run("SET LOCAL synchronous_commit = off; " + statement);
            });
        } catch (const Late&) {
            throw Failure("a transaction that does not end keeps table " + table +
                          " from getting its trigger\nHINT:  SELECT pid FROM pg_locks WHERE "
                          "relation = " +
                          old.literal(table) + "::regclass; shows who. Then --resume.");
        }
    }
}

void close_shards(Connection& old, Clock::time_point deadline)
{
    lock_and_run(old, deadline, [&] {
        require_triggers(old);
        old.query("SELECT snowflake_split.close()");
    });
    await_writers(old, "SELECT oid FROM (" + kTables + ") AS t WHERE leaves", deadline);
    require_triggers(old);
}

void close_sequences(Connection& old, Connection& keeper, Clock::time_point deadline)
{
    const std::vector<std::string> all = texts_of(
        old.query("SELECT sequence FROM snowflake_split.sequences WHERE leaves ORDER BY 1"));
    for (std::size_t begin = 0; begin < all.size(); begin += kBatch) {
        const std::string batch = as_array(all, begin, std::min(begin + kBatch, all.size()));
        lock_and_run(old, deadline, [&] {
            old.query("SELECT snowflake_split.lock_sequences($1)", {batch});
            const Result read =
                old.query("SELECT * FROM snowflake_split.read_sequences($1)", {batch});
            keeper.query("SELECT snowflake_split.keep_positions($1, $2, $3, $4, $5)",
                         {read.text(0, 0), read.text(0, 1), read.text(0, 2), read.text(0, 3),
                          read.text(0, 4)});
            old.query("SELECT snowflake_split.end_sequences($1)", {batch});
        });
    }
}

std::string seal_shards(Connection& old, Clock::time_point deadline)
{
    std::string seal;
    lock_and_run(old, deadline, [&] {
        seal = old.query("UPDATE snowflake_split.state SET step = 'sealed', "
                         "seal = gen_random_uuid() RETURNING seal")
                   .text(0, 0);
    });
    return seal;
}

/* setval() in reopen() is not rolled back. So the step goes back first: a command that goes on from
 * there closes all sequences again, and reads how far they have been drawn. */
void lower_fence(Connection& old, Clock::time_point deadline)
{
    const Watch watch(old, late_at(old, deadline));
    try {
        if (read_split(old)->step == SplitStep::prepared)
            return;
        lock_and_run(old, deadline, [&] {
            old.run("UPDATE snowflake_split.state SET step = 'closed', seal = NULL");
        });
        lock_and_run(old, deadline, [&] { old.query("SELECT snowflake_split.reopen()"); });
    } catch (const Failure& error) {
        throw Failure("the shards that leave may still be closed on " + old.server() +
                      ", until --resume or --abort: " + std::string(error.what()));
    }
}

void mark_closed_sequences(Connection& connection)
{
    const std::vector<std::string> sequences = texts_of(connection.query(R"(
        SELECT q.sequence::regclass FROM snowflake_split.sequences AS q, snowflake_split.state AS s
        WHERE q.leaves <> s.is_new AND NOT q.is_marked AND s.step = 'split' ORDER BY 1)"));
    Progress progress("closed sequences of " + connection.server(), sequences.size());
    for (const std::string& sequence : sequences) {
        lock_and_run(connection, Clock::now() + std::chrono::minutes(1), [&] {
            connection.run("SET LOCAL synchronous_commit = off");
            connection.query("SELECT snowflake_split.mark($1)", {sequence});
        });
        progress.step();
    }
}
