-- name: split
-- How a split closes and opens its shards, over fence.sql.

-- pg_create_physical_replication_slot() is not undone by a rollback, and reopen() leaves the slot. So the next close() uses the slot that
-- is there. The slot does not reserve WAL (immediately_reserve is false), and nothing connects to it, so it keeps none.
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

-- Undoes close() on the old server, also by hand, as docs/move-failures.md says.
CREATE FUNCTION snowflake_split.reopen() RETURNS void LANGUAGE plpgsql SET search_path = '' AS $$
BEGIN
    PERFORM snowflake_split.lift(), snowflake_split.open_side('staying');
    UPDATE snowflake_split.state SET step = 'prepared', home = NULL, seal = NULL, standby_start = NULL;
END $$;

-- On the old server, when the other one is open: the shards that stay are open without the slot, too. No direct draw was stopped for
-- them, so there is only the trigger function.
CREATE FUNCTION snowflake_split.stay() RETURNS void LANGUAGE plpgsql SET search_path = '' AS $$
BEGIN
    PERFORM snowflake_split.open_side('staying');
    UPDATE snowflake_split.state SET step = 'split', home = NULL;
END $$;

-- On the server that was promoted, when its sequences have been treated: it has the shards that have left from now on, and no others.
CREATE FUNCTION snowflake_split.open_sides() RETURNS void LANGUAGE plpgsql SET search_path = '' AS $$
BEGIN
    PERFORM snowflake_split.set_body('staying', 'false', ', has stayed', format('It is at %s.', s.old_server)) FROM snowflake_split.state AS s;
    PERFORM snowflake_split.open_side('leaving'), snowflake_split.note_closing(false);
    UPDATE snowflake_split.state SET step = 'split', home = NULL, is_new = true;
END $$;
-- All of it by hand.
CREATE FUNCTION snowflake_split.open() RETURNS void LANGUAGE plpgsql SET search_path = '' AS $$
BEGIN
    PERFORM snowflake_split.end_sequences(snowflake_split.sequences_of(false));
    PERFORM snowflake_split.release_sequences(snowflake_split.sequences_of(true));
    PERFORM snowflake_split.open_sides();
END $$;

-- name: after_promotion
-- The writing statements of a split after the promotion, in a transaction that is rolled back. setval() is not rolled back, so it is called for a
-- sequence of this transaction alone.
CREATE SEQUENCE snowflake_split.tried;
SELECT snowflake_split.keep_positions(sequences, last_values, are_called, at_end)
FROM snowflake_split.read_sequences(ARRAY['snowflake_split.tried'::regclass::oid]);
SELECT snowflake_split.end_sequences(ARRAY['snowflake_split.tried'::regclass::oid]);
SELECT snowflake_split.release_sequences(ARRAY['snowflake_split.tried'::regclass::oid]);
SELECT snowflake_split.open_sides();
SELECT snowflake_split.mark('snowflake_split.tried');
SELECT snowflake_split.stay();
