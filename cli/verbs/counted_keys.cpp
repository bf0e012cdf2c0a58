#include "verbs/counted_keys.h"

#include "base/output.h"
#include "base/quoting.h"

/* A DEFAULT with nextval() depends on its sequence, and so does one that makes IDs: those are left
 * out. Partitions have the keys of their parent. */
void warn_of_counted_keys(Connection& connection, const Shard& origin)
{
    const Result keys = connection.query(R"(
        SELECT format('%I.%I', c.relname, a.attname),
               format('SELECT %s.snowflake_attach(%L, %L);', e.extnamespace::regnamespace, format('%I', c.relname), a.attname)
        FROM pg_class AS c
        JOIN pg_attribute AS a ON a.attrelid = c.oid
        JOIN pg_extension AS e ON e.extname = 'snowflake'
        WHERE c.relnamespace = $1::regnamespace AND NOT c.relispartition AND a.attnum > 0 AND a.attinhcount = 0
          AND EXISTS (SELECT FROM pg_index AS i WHERE i.indrelid = c.oid AND i.indisunique AND i.indnkeyatts = 1
                      AND i.indkey[0] = a.attnum)
          AND (a.attidentity <> ''
               OR EXISTS (SELECT FROM pg_attrdef AS f
                          JOIN pg_depend AS d ON d.classid = 'pg_attrdef'::regclass AND d.objid = f.oid
                              AND d.refclassid = 'pg_class'::regclass
                          JOIN pg_sequence AS s ON s.seqrelid = d.refobjid
                          WHERE f.adrelid = c.oid AND f.adnum = a.attnum))
          AND NOT EXISTS (SELECT FROM snowflake_internal.call_of('pg_class'::regclass, c.oid, a.attnum))
        ORDER BY c.relname COLLATE "C", a.attnum)",
                                         {origin.quoted});
    for (int i = 0; i < keys.rows(); i++)
        warn("each shard counts " + visible(keys.text(i, 0)) +
             " from 1: two shards have the same keys, and no shard is in them.\nHINT:  If other "
             "shards or programs keep this key, run in each shard: " +
             visible(keys.text(i, 1)));
}
