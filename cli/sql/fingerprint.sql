-- name: fingerprint
-- The body of a function, or of DO: see definition/fingerprint.h. @schemas@: an expression, the OIDs of the schemas; @bounds@: the table
-- bounds of fence.sql, or a query with its columns; @result@: a statement that takes the variable fingerprint.
--
-- The rows of the catalogue that define the shard, by their xmin; those of pg_class by their contents, because TRUNCATE and REFRESH
-- MATERIALIZED VIEW write them, too; those of pg_sequence because the fence writes them. The changes of a move are left out: its triggers,
-- those of keys, and the bounds of sequences. A sequence that has the bounds of mark() counts as it was before, and one that was altered
-- since as it is.
--
-- An ALTER writes a new version of its row, and a dropped object has no row any more. OIDs are unique in one catalogue alone, so tableoid
-- is a part of each row; comments and security labels are joined by both. A child in another schema counts, because it takes rows of its
-- parent, and no dump of the schema has it.
--
-- Objects of the schema are found by the index of pg_depend, where each depends on it, and the rest by those: the time must not grow with
-- the number of other shards. Only the relation of a composite type, row types, arrays and indexes depend on their type or table in its
-- place; row types and arrays change with them alone. Most of the time would go into plans, so they are made once a session.
--
-- sha256(), because OpenSSL in FIPS mode has no MD5; the text keeps its encoding, as SQL_ASCII has bytes that are no UTF-8.
DECLARE
    schemas CONSTANT oid[] := @schemas@;
    members CONSTANT oid[] := ARRAY(SELECT objid FROM pg_depend WHERE refclassid = 'pg_namespace'::regclass AND refobjid = ANY (schemas));
    types CONSTANT oid[] := ARRAY(SELECT oid FROM pg_type WHERE oid = ANY (members) AND typnamespace = ANY (schemas));
    tables CONSTANT oid[] := ARRAY(SELECT oid FROM pg_class WHERE oid = ANY (members) AND relnamespace = ANY (schemas) AND relkind <> 'S');
    sequences CONSTANT oid[] := ARRAY(SELECT oid FROM pg_class WHERE oid = ANY (members) AND relnamespace = ANY (schemas) AND relkind = 'S');
    others CONSTANT oid[] := ARRAY(SELECT typrelid FROM pg_type WHERE oid = ANY (types) AND typrelid <> 0)
        || ARRAY(SELECT indexrelid FROM pg_index WHERE indrelid = ANY (tables));
    relations CONSTANT oid[] := tables || others;
    functions CONSTANT oid[] := ARRAY(SELECT oid FROM pg_proc WHERE oid = ANY (members) AND pronamespace = ANY (schemas));
    fingerprint text;
BEGIN
    fingerprint := (
        WITH written (catalog, object, by) AS (
            SELECT tableoid, oid, xmin::text FROM pg_namespace WHERE oid = ANY (schemas)
            UNION ALL SELECT tableoid, oid, concat_ws(' ', relname, relowner, relam, reltablespace, relpersistence, relrowsecurity,
                                                      relforcerowsecurity, relreplident, relispartition, relacl, reloptions, relpartbound)
                      FROM pg_class WHERE oid = ANY (relations || sequences)
            UNION ALL SELECT q.tableoid, seqrelid, concat_ws(' ', seqtypid, seqincrement, seqcache, coalesce(low, seqmin), coalesce(high, seqmax),
                                                          coalesce(start, seqstart), coalesce(cycles, seqcycle))
                      FROM pg_sequence AS q
                      LEFT JOIN @bounds@ AS b ON sequence = seqrelid AND (seqmin, seqmax, seqstart, seqcycle) = (1, 2, 1, false)
                      WHERE seqrelid = ANY (sequences)
            UNION ALL SELECT tableoid, attrelid, xmin::text FROM pg_attribute WHERE attrelid = ANY (relations)
            UNION ALL SELECT tableoid, oid, xmin::text FROM pg_attrdef WHERE adrelid = ANY (tables)
            UNION ALL SELECT tableoid, indexrelid, xmin::text FROM pg_index WHERE indrelid = ANY (tables)
            UNION ALL SELECT tableoid, inhrelid, xmin::text FROM pg_inherits WHERE inhrelid = ANY (relations) OR inhparent = ANY (relations)
            UNION ALL SELECT tableoid, oid, xmin::text FROM pg_constraint WHERE conrelid = ANY (tables) OR contypid = ANY (types)
            UNION ALL SELECT tableoid, oid, xmin::text FROM pg_trigger WHERE tgrelid = ANY (tables) AND NOT tgisinternal AND tgname <> 'snowflake_move'
            UNION ALL SELECT tableoid, oid, xmin::text FROM pg_policy WHERE polrelid = ANY (tables)
            UNION ALL SELECT tableoid, oid, xmin::text FROM pg_rewrite WHERE ev_class = ANY (tables)
            UNION ALL SELECT tableoid, oid, xmin::text FROM pg_statistic_ext WHERE oid = ANY (members) AND stxnamespace = ANY (schemas)
            UNION ALL SELECT tableoid, oid, xmin::text FROM pg_proc WHERE oid = ANY (functions)
            UNION ALL SELECT tableoid, oid, xmin::text FROM pg_type WHERE oid = ANY (types)
            UNION ALL SELECT tableoid, oid, xmin::text FROM pg_enum WHERE enumtypid = ANY (types)
            UNION ALL SELECT tableoid, oid, xmin::text FROM pg_operator WHERE oprnamespace = ANY (schemas)
            UNION ALL SELECT tableoid, oid, xmin::text FROM pg_opclass WHERE opcnamespace = ANY (schemas)
            UNION ALL SELECT tableoid, oid, xmin::text FROM pg_opfamily WHERE opfnamespace = ANY (schemas)
            UNION ALL SELECT a.tableoid, a.oid, a.xmin::text
                      FROM pg_amop AS a JOIN pg_opfamily AS f ON f.oid = amopfamily WHERE opfnamespace = ANY (schemas)
            UNION ALL SELECT a.tableoid, a.oid, a.xmin::text
                      FROM pg_amproc AS a JOIN pg_opfamily AS f ON f.oid = amprocfamily WHERE opfnamespace = ANY (schemas)
            UNION ALL SELECT tableoid, oid, xmin::text FROM pg_conversion WHERE connamespace = ANY (schemas)
            UNION ALL SELECT tableoid, ftrelid, xmin::text FROM pg_foreign_table WHERE ftrelid = ANY (tables)
            UNION ALL SELECT tableoid, oid, xmin::text FROM pg_collation WHERE collnamespace = ANY (schemas)
            UNION ALL SELECT tableoid, oid, xmin::text FROM pg_ts_config WHERE cfgnamespace = ANY (schemas)
            UNION ALL SELECT m.tableoid, mapcfg, m.xmin::text
                      FROM pg_ts_config_map AS m JOIN pg_ts_config AS c ON c.oid = mapcfg WHERE cfgnamespace = ANY (schemas)
            UNION ALL SELECT tableoid, oid, xmin::text FROM pg_ts_dict WHERE dictnamespace = ANY (schemas)
            UNION ALL SELECT tableoid, oid, xmin::text FROM pg_default_acl WHERE defaclnamespace = ANY (schemas)),
        commented AS (
            SELECT d.tableoid, objoid, d.xmin::text FROM pg_description AS d JOIN written ON catalog = classoid AND object = objoid
            UNION ALL
            SELECT l.tableoid, objoid, l.xmin::text FROM pg_seclabel AS l JOIN written ON catalog = classoid AND object = objoid)
        SELECT encode(sha256(convert_to(string_agg(concat_ws(' ', catalog, object, by), ',' ORDER BY catalog, object, by),
                                        getdatabaseencoding())), 'hex')
        FROM (TABLE written UNION ALL TABLE commented) AS rows);
    @result@;
END
