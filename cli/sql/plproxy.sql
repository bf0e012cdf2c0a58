-- name: plproxy
-- The output of map --format plproxy. It is run again after each move, so it makes the difference between the options that are there and
-- the wanted ones: ADD, SET or DROP. Other options, such as connection_lifetime, stay. The order is by the length of the name first,
-- because PL/Proxy wants the partitions in the order of their numbers: p2 before p10. A DO block is one transaction, so no session sees a
-- part of the change.
DO @begin@
DECLARE
    cluster CONSTANT name := '@cluster@';
    changes text;
BEGIN
    IF NOT EXISTS (SELECT FROM pg_foreign_server WHERE srvname = cluster) THEN
        EXECUTE format('CREATE SERVER %I FOREIGN DATA WRAPPER plproxy OPTIONS (p0 '''')', cluster);
    END IF;
    SELECT string_agg(CASE WHEN n.option IS NULL THEN format('DROP %I', o.option)
                           WHEN o.option IS NULL THEN format('ADD %I %L', n.option, n.value)
                           ELSE format('SET %I %L', n.option, n.value) END, ', '
                      ORDER BY length(n.option), n.option) INTO changes
    FROM (VALUES
@partitions@
    ) AS n (option, value)
    FULL JOIN (SELECT (pg_options_to_table(srvoptions)).option_name AS option
               FROM pg_foreign_server WHERE srvname = cluster) AS o ON o.option = n.option
    WHERE n.option IS NOT NULL OR o.option ~ '^p[0-9]+$';
    EXECUTE format('ALTER SERVER %I OPTIONS (%s)', cluster, changes);
END @end@;
