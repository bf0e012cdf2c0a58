-- Scripts of comments alone, and such as end a transaction.
SELECT s, snowflake_internal.has_statements(s), snowflake_internal.ends_transaction(s) FROM unnest(ARRAY[
    '', ';;', '-- BEGIN', '/* COMMIT; */ ;', 'SELECT 1', 'VACUUM; COMMIT', 'START TRANSACTION', 'SAVEPOINT s', $$DO 'BEGIN COMMIT; END'$$,
    $$SELECT 'COMMIT;'$$]) AS s;
