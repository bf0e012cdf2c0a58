#include "cutover/dependents.h"

namespace
{

/* Members are the objects of the schemas, and those dropped with them: row types, constraints,
 * TOAST tables, rows of a publication. deptype i, a, P and S are those that DROP follows without
 * CASCADE. A relation of another schema is no member, even if DROP TABLE of a parent takes it
 * along: a partition there is a dependent, by deptype a.
 *
 * A foreign key depends on the columns of the table and on the index of the key. The row of the
 * index is left out, so that it is named once.
 *
 * MATERIALIZED, because pg_identify_object() could be called for each row of pg_depend otherwise:
 * there may be a million, and objects that are being dropped can make it an error. */
const char* const kDependents = R"(
WITH RECURSIVE members AS (
    SELECT 'pg_namespace'::regclass::oid AS classid, unnest($1::regnamespace[])::oid AS objid
    UNION
    SELECT d.classid, d.objid
    FROM members AS m JOIN pg_depend AS d ON d.refclassid = m.classid AND d.refobjid = m.objid
    WHERE (m.classid = 'pg_namespace'::regclass OR d.deptype IN ('i', 'a', 'P', 'S'))
    AND NOT EXISTS (SELECT FROM pg_class AS c
                    WHERE d.classid = c.tableoid AND d.objid = c.oid
                    AND relnamespace <> ALL ($1::regnamespace[] || 'pg_toast'::regnamespace))
), dependents AS MATERIALIZED (
    SELECT d.* FROM members AS m JOIN pg_depend AS d ON d.refclassid = m.classid AND d.refobjid = m.objid
    WHERE d.deptype IN ('n', 'a') AND (d.classid, d.objid) NOT IN (TABLE members)
)
SELECT DISTINCT pg_describe_object(classid, objid, objsubid) || ' needs ' || pg_describe_object(refclassid, refobjid, 0)
FROM dependents WHERE (pg_identify_object(refclassid, refobjid, 0)).type NOT LIKE '%index')";

} // namespace

std::vector<std::string> find_dependents(Connection& connection, const Shards& shards)
{
    std::vector<std::string> dependents;
    for (const std::string& dependent :
         texts_of(connection.query(kDependents, {schemas_of(shards)})))
        dependents.push_back(visible(dependent));
    return dependents;
}
