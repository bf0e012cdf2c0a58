\echo Use "ALTER EXTENSION snowflake UPDATE TO '1.1.1'" to load this file. \quit
-- From 1.1 to 1.1.1. The parts are those of the install script.

CREATE OR REPLACE VIEW snowflake_sequences AS
    SELECT s.seq::pg_catalog.regclass AS seq, s.shard, s.epoch_ms,
           CASE WHEN s.used THEN pg_catalog.to_timestamp(s.ms OPERATOR(pg_catalog./) 1000::pg_catalog.float8)
               END AS last_id_at,
           CASE WHEN s.used THEN s.last_value OPERATOR(pg_catalog.&) 1023 END::integer AS last_counter,
           CASE WHEN s.used THEN pg_catalog.to_timestamp(s.ms OPERATOR(pg_catalog./) 1000::pg_catalog.float8)
                                 OPERATOR(pg_catalog.-) pg_catalog.clock_timestamp() END AS lead
    FROM (SELECT m.*, m.is_called
                 -- A smaller value has no time: it counts IDs of the PL/pgSQL function, or none.
                 AND m.last_value OPERATOR(pg_catalog.>=) (1::bigint OPERATOR(pg_catalog.<<) 45)
                 -- No ID is older than its epoch, which can be any number; a timestamp cannot.
                 AND m.ms OPERATOR(pg_catalog.>=) GREATEST(0, m.epoch_ms) AS used
          FROM (SELECT k.*, v.*, snowflake_internal.stored_ms(v.last_value, k.epoch_ms) AS ms
                FROM (SELECT DISTINCT d.seq, d.shard, d.epoch_ms FROM snowflake_internal.calls() AS d) AS k
                -- Anybody can write a DEFAULT that names a table where a sequence should stand.
                JOIN pg_catalog.pg_sequence AS q ON q.seqrelid OPERATOR(pg_catalog.=) k.seq
                JOIN pg_catalog.pg_class AS c ON c.oid OPERATOR(pg_catalog.=) k.seq
                     AND NOT pg_catalog.pg_is_other_temp_schema(c.relnamespace)
                CROSS JOIN LATERAL snowflake_internal.stored_value(k.seq) AS v) AS m) AS s;
