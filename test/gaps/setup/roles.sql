-- Roles of the tests, and the code that mallory plants. The canary notes who runs it.
SET client_min_messages = error;
DO $$
DECLARE r text;
BEGIN
    FOREACH r IN ARRAY '{mallory, web, other}'::text[] LOOP
        IF to_regrole(r) IS NULL THEN EXECUTE format('CREATE ROLE %I LOGIN', r); END IF;
    END LOOP;
END $$;
CREATE EXTENSION snowflake;
GRANT CREATE ON SCHEMA public TO mallory; -- as every role may in a database that was made before PostgreSQL 15
CREATE SCHEMA mallory AUTHORIZATION mallory;
SET ROLE mallory;
CREATE FUNCTION mallory.note(place text) RETURNS integer LANGUAGE plpgsql IMMUTABLE AS $$
BEGIN
    RAISE LOG 'CANARY: % as % in %', place, current_user,
        (SELECT backend_type FROM pg_stat_activity WHERE pid = pg_backend_pid());
    RETURN 1;
END $$;
CREATE FUNCTION mallory.note_of_trigger() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    PERFORM mallory.note('trigger');
    EXECUTE 'RESET ROLE';
    PERFORM mallory.note('trigger after RESET ROLE');
    RETURN NEW;
EXCEPTION WHEN OTHERS THEN
    RETURN NEW;
END $$;
-- Code in all places of a table that can have some.
CREATE PROCEDURE mallory.plant_on(tab text) LANGUAGE plpgsql AS $$
DECLARE
    statement text;
BEGIN
    FOREACH statement IN ARRAY ARRAY[
        'ALTER TABLE %1$s ADD CONSTRAINT planted_check CHECK (mallory.note(''check'') = 1) NOT VALID',
        'CREATE INDEX planted_index ON %1$s ((mallory.note(''index'')))',
        'CREATE INDEX planted_predicate ON %1$s (id) WHERE mallory.note(''predicate'') = 1',
        'CREATE STATISTICS planted_statistics ON (mallory.note(''statistics'')), id FROM %1$s',
        'CREATE TRIGGER planted_rows BEFORE INSERT OR UPDATE OR DELETE ON %1$s FOR EACH ROW EXECUTE FUNCTION mallory.note_of_trigger()',
        'ALTER TABLE %1$s ENABLE ALWAYS TRIGGER planted_rows',
        'CREATE TRIGGER planted_statement AFTER INSERT OR UPDATE OR DELETE OR TRUNCATE ON %1$s EXECUTE FUNCTION mallory.note_of_trigger()',
        'ALTER TABLE %1$s ENABLE ALWAYS TRIGGER planted_statement',
        'CREATE POLICY planted_policy ON %1$s USING (mallory.note(''policy'') = 1)',
        'ALTER TABLE %1$s ENABLE ROW LEVEL SECURITY',
        'ALTER TABLE %1$s ADD COLUMN planted_default integer DEFAULT mallory.note(''default'')',
        'CREATE RULE planted_rule AS ON DELETE TO %1$s DO ALSO SELECT mallory.note(''rule'')',
        'CREATE MATERIALIZED VIEW %1$s_planted AS SELECT mallory.note(''materialized view'') FROM %1$s'] LOOP
        BEGIN
            EXECUTE format(statement, tab);
        EXCEPTION WHEN OTHERS THEN NULL;
        END;
    END LOOP;
END $$;
-- Functions of the extension that fit better than its own: for oid in place of regclass, and so on.
CREATE PROCEDURE mallory.plant_functions() LANGUAGE plpgsql AS $$
DECLARE
    f record;
    types oid[];
    i integer;
    change record;
BEGIN
    FOR f IN SELECT p.oid, proname, proargtypes::oid[] AS argtypes, prorettype, proretset FROM pg_proc AS p
             JOIN pg_depend AS d ON d.classid = 'pg_proc'::regclass AND objid = p.oid AND deptype = 'e'
             WHERE pronamespace = 'public'::regnamespace AND prokind = 'f' AND pronargs > 0 LOOP
        FOR change IN SELECT * FROM (VALUES ('regclass', 'oid'), ('regclass', 'text'), ('text', 'name'), ('name', 'text'), ('integer', 'smallint'),
                                     ('integer', 'bigint'), ('bigint', 'integer'), ('regclass', 'unknown')) AS c (before, after) LOOP
            SELECT array_agg(CASE t WHEN change.before::regtype THEN change.after::regtype ELSE t::regtype END::oid ORDER BY n)
            INTO types FROM unnest(f.argtypes) WITH ORDINALITY AS u (t, n);
            BEGIN
                EXECUTE format('CREATE FUNCTION public.%I(%s) RETURNS %s %s LANGUAGE sql AS %L', f.proname,
                    (SELECT string_agg(t::regtype::text, ', ' ORDER BY n) FROM unnest(types) WITH ORDINALITY AS u (t, n)),
                    CASE WHEN f.proretset THEN 'SETOF' ELSE '' END, f.prorettype::regtype,
                    format('SELECT mallory.note(%L); SELECT NULL::%s', 'function ' || f.proname, f.prorettype::regtype));
            EXCEPTION WHEN OTHERS THEN NULL;
            END;
        END LOOP;
    END LOOP;
END $$;
