#include "split/session.h"

#include "postgres/trust.h"

namespace
{

/* CREATE SCHEMA without IF NOT EXISTS: a schema of this name that another role has made is an
 * error, and is not used. The rows have OIDs of sequences, because a standby has the same ones.
 *
 * The trigger functions leaving() and staying() run as the client, with its search_path, so
 * their bodies qualify every name, operators too.
 *
 * close(): pg_create_physical_replication_slot() is not undone by a rollback, and reopen() leaves
 * the slot. So the next close() uses the slot that is there. The slot does not reserve WAL
 * (immediately_reserve is false), and nothing connects to it, so it keeps none.
 *
 * end_sequences(): a sequence that cycles would begin anew at its end, so it gets NO CYCLE before.
 *
 * release_sequences() sets only sequences that are at their end. One that was released by an
 * earlier call, and drawn from since, is left alone: its IDs would come twice. The loop over bounds
 * undoes mark(), for a reopen() by hand after the split. RESTART is there because ALTER SEQUENCE
 * refuses bounds that do not hold last_value; setval() then puts the sequence to its end again.
 *
 * reopen() and open() treat the sequences of all shards, so that a user can call them by hand, as
 * docs/move-failures.md says. The command treats them in batches, see sequences.h, and runs
 * kOpenSides in place of open(), which would read thousands of sequences again.
 *
 * stay(): on the old server no direct draw was stopped for the shards that stay, so there is only
 * the trigger function. */
const char* const kFence = R"sql(
CREATE SCHEMA snowflake_split;
CREATE TABLE snowflake_split.state (
    id uuid PRIMARY KEY DEFAULT gen_random_uuid(),
    old_server text NOT NULL,
    new_server text NOT NULL,
    step text NOT NULL DEFAULT 'prepared',
    is_new boolean NOT NULL DEFAULT false,
    home text,
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
    slot CONSTANT text := 'snowflake_split_' || translate(own.id::text, '-', '_');
BEGIN
    PERFORM pg_create_physical_replication_slot(slot) WHERE NOT EXISTS (SELECT FROM pg_replication_slots WHERE slot_name = slot);
    PERFORM snowflake_split.set_body('leaving', 'false', ', has moved', format('It is at %s now.', own.new_server));
    PERFORM snowflake_split.set_body('staying', format('EXISTS (SELECT FROM pg_catalog.pg_replication_slots '
                                                       'WHERE slot_name OPERATOR(pg_catalog.=) %L)', slot),
                                     ', is not open here', format('It was at %s when the server was split.', own.old_server));
    UPDATE snowflake_split.state SET step = 'closed', home = slot, seal = NULL, standby_start = NULL;
END $$;

-- A sequence that cannot be read is an error: it would be passed over, and neither be closed nor opened.
CREATE FUNCTION snowflake_split.refuse(sequence oid) RETURNS bigint LANGUAGE plpgsql SET search_path = '' AS $$
BEGIN
    RAISE EXCEPTION 'sequence % cannot be read: another session has locked it, or role % has no right to it', sequence::regclass, current_user
        USING ERRCODE = 'lock_not_available';
END $$;
-- STABLE and without SET search_path, so that the planner inlines it: it is called for thousands. OFFSET 0: a condition of the caller
-- on is_called cannot come first.
CREATE FUNCTION snowflake_split.stored(sequence oid) RETURNS TABLE (last_value bigint, is_called boolean) LANGUAGE sql STABLE
    AS 'SELECT COALESCE(v.last_value, snowflake_split.refuse(sequence)), v.is_called FROM snowflake_internal.stored_value(sequence) AS v OFFSET 0';
-- How far they have been drawn. at_end: such a sequence is closed already, and its position is kept.
CREATE FUNCTION snowflake_split.read_sequences(wanted oid[], OUT sequences oid[], OUT last_values bigint[], OUT are_called boolean[],
                                               OUT cycle boolean[], OUT at_end boolean[])
    LANGUAGE sql SET search_path = '' AS $$
    SELECT array_agg(s.sequence), array_agg(v.last_value), array_agg(v.is_called), array_agg(s.cycles),
           array_agg(v.last_value = s.last AND v.is_called AND NOT s.cycles)
    FROM snowflake_split.sequences AS s CROSS JOIN LATERAL snowflake_split.stored(s.sequence) AS v
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
    PERFORM setval(s.sequence, s.last, true)
    FROM snowflake_split.sequences AS s CROSS JOIN LATERAL snowflake_split.stored(s.sequence) AS v
    WHERE s.sequence = ANY (wanted) AND NOT (v.last_value = s.last AND v.is_called);
END $$;
CREATE FUNCTION snowflake_split.release_sequences(wanted oid[]) RETURNS void LANGUAGE plpgsql SET search_path = '' AS $$
DECLARE
    marked record;
    object regclass;
BEGIN
    FOR marked IN
        SELECT b.*, s.is_up FROM snowflake_split.bounds AS b JOIN snowflake_split.positions AS p ON p.sequence = b.sequence
        JOIN snowflake_split.sequences AS s ON s.sequence = b.sequence WHERE b.sequence = ANY (wanted)
    LOOP
        EXECUTE format('ALTER SEQUENCE %s MINVALUE %s MAXVALUE %s START %s RESTART', marked.sequence::regclass, marked.low, marked.high, marked.start);
        PERFORM setval(marked.sequence, CASE WHEN marked.is_up THEN marked.high ELSE marked.low END, true);
        DELETE FROM snowflake_split.bounds AS b WHERE b.sequence = marked.sequence;
    END LOOP;
    FOR object IN SELECT p.sequence FROM snowflake_split.positions AS p WHERE p.cycles AND p.sequence = ANY (wanted) LOOP
        EXECUTE format('ALTER SEQUENCE %s CYCLE', object);
    END LOOP;
    -- OFFSET 0: stored() raises an error for a sequence that another session has locked, and one without a position is not closed.
    PERFORM setval(c.sequence, c.last_value, c.is_called)
    FROM (SELECT s.sequence, s.last, p.last_value, p.is_called
          FROM snowflake_split.positions AS p JOIN snowflake_split.sequences AS s ON s.sequence = p.sequence
          WHERE s.sequence = ANY (wanted) OFFSET 0) AS c
    CROSS JOIN LATERAL snowflake_split.stored(c.sequence) AS v
    WHERE v.last_value = c.last AND v.is_called;
END $$;
CREATE FUNCTION snowflake_split.sequences_of(leave boolean) RETURNS oid[] LANGUAGE sql SET search_path = ''
    AS 'SELECT array_agg(s.sequence) FROM snowflake_split.sequences AS s WHERE s.leaves = leave';

-- Undoes close() on the old server.
CREATE FUNCTION snowflake_split.reopen() RETURNS void LANGUAGE plpgsql SET search_path = '' AS $$
BEGIN
    PERFORM snowflake_split.release_sequences(snowflake_split.sequences_of(true));
    PERFORM snowflake_split.open_side('leaving'), snowflake_split.open_side('staying');
    DELETE FROM snowflake_split.positions;
    UPDATE snowflake_split.state SET step = 'prepared', home = NULL, seal = NULL, standby_start = NULL;
END $$;

-- On the old server, when the other one is open: what stays is open without the slot, too.
CREATE FUNCTION snowflake_split.stay() RETURNS void LANGUAGE plpgsql SET search_path = '' AS $$
BEGIN
    PERFORM snowflake_split.open_side('staying');
    UPDATE snowflake_split.state SET step = 'split', home = NULL;
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

const std::string kOpenSides = R"sql(
    PERFORM snowflake_split.set_body('staying', 'false', ', has stayed', format('It is at %s.', s.old_server)) FROM snowflake_split.state AS s;
    PERFORM snowflake_split.open_side('leaving');
    UPDATE snowflake_split.state SET step = 'split', home = NULL, is_new = true;
)sql";

const std::string kOpen = R"sql(
-- On the server that was promoted: it has the shards that have left from now on, and no others.
CREATE FUNCTION snowflake_split.open() RETURNS void LANGUAGE plpgsql SET search_path = '' AS $$
BEGIN
    PERFORM snowflake_split.end_sequences(snowflake_split.sequences_of(false));
    PERFORM snowflake_split.release_sequences(snowflake_split.sequences_of(true));)sql" +
                          kOpenSides + R"sql(END $$;

-- To fire a trigger takes no privilege, and CREATE OR REPLACE keeps these.
REVOKE EXECUTE ON ALL FUNCTIONS IN SCHEMA snowflake_split FROM PUBLIC;
)sql";

} // namespace

void make_split(Connection& old, const Address& new_server, const std::vector<SplitShard>& shards)
{
    old.run(kFence + kOpen + keeping_to_owner(kSplitSchema));
    old.query("INSERT INTO snowflake_split.state (old_server, new_server) VALUES ($1, $2)",
              {old.address().text(), new_server.text()});
    std::string rows;
    for (const SplitShard& shard : shards)
        rows += (rows.empty() ? "(" : ", (") + std::to_string(shard.number) + ", " +
                old.literal(shard.schema) + ", " + (shard.leaves ? "true)" : "false)");
    old.run("INSERT INTO snowflake_split.shards VALUES " + rows);
}

void open_sides(Connection& standby)
{
    standby.run("DO $$ BEGIN" + kOpenSides + "END $$");
}
