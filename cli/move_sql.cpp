#include "move.h"

/* The fence is made of three parts, because there are three ways to make an ID or a row:
 *
 * A trigger FOR EACH STATEMENT on every table and partition fires before a DEFAULT is computed.
 * The DEFAULTs stay, because to change them would lock readers out. For the same reason reopen()
 * disables the triggers, and they are dropped with the schema of the move.
 *
 * The native functions raise the same error. CREATE OR REPLACE keeps their OID and privileges.
 *
 * A sequence gets bounds that leave no value to be drawn, for direct calls of snowflake_next_id()
 * and nextval(). ALTER SEQUENCE waits for every transaction that has drawn from it, so the position
 * that is read after the first ALTER is the last one. It writes a new file, so that setval() below
 * is rolled back with it. */
const char* const kMoveSchema = R"sql(
CREATE SCHEMA @move@;
CREATE TABLE @move@.state (
    id uuid NOT NULL,         -- of the move, the same on both sides
    schema_name name NOT NULL,
    other text NOT NULL,      -- the other server
    step text NOT NULL,       -- source: prepared, fenced, moved; target: copying, ready, open
    is_open boolean NOT NULL, -- false: behind the fence
    marker uuid);             -- of the fence that stands on the source
CREATE TABLE @move@.marker (id uuid PRIMARY KEY, positions jsonb NOT NULL);
CREATE TABLE @move@.undo (number integer GENERATED ALWAYS AS IDENTITY, statement text NOT NULL);
-- verify, list and map may be run by any role.
GRANT USAGE ON SCHEMA @move@ TO PUBLIC;
GRANT SELECT ON @move@.state TO PUBLIC;

CREATE FUNCTION @move@.fence() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    RAISE EXCEPTION USING ERRCODE = 'read_only_sql_transaction', MESSAGE = TG_ARGV[0], DETAIL = TG_ARGV[1];
END $$;

CREATE FUNCTION @move@.close(firing text, problem text, place text) RETURNS jsonb
    LANGUAGE plpgsql SET search_path = '' AS $$
DECLARE
    home CONSTANT oid := (SELECT n.oid FROM pg_namespace AS n JOIN @move@.state AS s ON s.schema_name = n.nspname);
    tables CONSTANT regclass[] := ARRAY(SELECT oid FROM pg_class WHERE relnamespace = home AND relkind IN ('r', 'p') ORDER BY oid);
    body CONSTANT text := format('BEGIN RAISE EXCEPTION USING ERRCODE = ''read_only_sql_transaction'', MESSAGE = %L, DETAIL = %L; END',
                                 problem, place);
    object regclass;
    function record;
    bounds record;
    drawn record;
    is_up boolean;
    positions jsonb := '[]';
BEGIN
    -- All at once and in one order. Readers are not blocked.
    IF cardinality(tables) > 0 THEN
        EXECUTE (SELECT format('LOCK TABLE ONLY %s IN SHARE ROW EXCLUSIVE MODE', string_agg(t::text, ', ONLY ' ORDER BY t))
                 FROM unnest(tables) AS t);
    END IF;
    FOREACH object IN ARRAY tables LOOP
        EXECUTE format('CREATE OR REPLACE TRIGGER snowflake_move BEFORE INSERT OR UPDATE OR DELETE OR TRUNCATE ON %s '
                       'FOR EACH STATEMENT EXECUTE FUNCTION @move@.fence(%L, %L)', object, problem, place);
        EXECUTE format('ALTER TABLE ONLY %s ENABLE %s TRIGGER snowflake_move', object, firing);
        INSERT INTO @move@.undo (statement) VALUES (format('ALTER TABLE ONLY %s DISABLE TRIGGER snowflake_move', object));
    END LOOP;

    FOR function IN
        SELECT format('%I.%I(%s) RETURNS %s', n.nspname, p.proname, pg_get_function_arguments(p.oid),
                      pg_get_function_result(p.oid)) AS signature, pg_get_functiondef(p.oid) AS definition
        FROM pg_proc AS p JOIN pg_namespace AS n ON n.oid = p.pronamespace
        WHERE n.oid = home AND p.oid IN (SELECT objid FROM snowflake_internal.calls()
                                         WHERE classid = 'pg_proc'::regclass AND is_direct)
    LOOP
        EXECUTE format('CREATE OR REPLACE FUNCTION %s LANGUAGE plpgsql AS %L', function.signature, body);
        INSERT INTO @move@.undo (statement) VALUES (function.definition);
    END LOOP;

    FOR object IN SELECT oid FROM pg_class WHERE relnamespace = home AND relkind = 'S' ORDER BY oid LOOP
        SELECT * INTO bounds FROM pg_sequence WHERE seqrelid = object;
        EXECUTE format('ALTER SEQUENCE %s NO CYCLE', object);
        EXECUTE format('SELECT last_value, is_called FROM %s', object) INTO drawn;
        is_up := bounds.seqincrement > 0;
        EXECUTE format('ALTER SEQUENCE %s MINVALUE %s MAXVALUE %s START %s', object,
                       drawn.last_value - is_up::integer, drawn.last_value + (NOT is_up)::integer, drawn.last_value);
        PERFORM setval(object, drawn.last_value, true);
        INSERT INTO @move@.undo (statement) VALUES
            (format('ALTER SEQUENCE %s MINVALUE %s MAXVALUE %s START %s %s', object, bounds.seqmin, bounds.seqmax,
                    bounds.seqstart, CASE WHEN bounds.seqcycle THEN 'CYCLE' END)),
            (format('SELECT pg_catalog.setval(%L, %s, %L)', object, drawn.last_value, drawn.is_called));
        positions := positions || jsonb_build_object('sequence', object, 'last_value', drawn.last_value,
                                                     'is_called', drawn.is_called);
    END LOOP;
    RETURN positions;
END $$;

CREATE FUNCTION @move@.reopen() RETURNS void LANGUAGE plpgsql SET search_path = '' AS $$
DECLARE
    undo record;
BEGIN
    FOR undo IN SELECT u.statement FROM @move@.undo AS u ORDER BY u.number LOOP
        EXECUTE undo.statement;
    END LOOP;
    DELETE FROM @move@.undo;
END $$;
)sql";
