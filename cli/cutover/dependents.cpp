#include "cutover/dependents.h"

#include "base/output.h"
#include "postgres/drop_schemas.h"
#include "sql/sql.h"

namespace
{

/* ALTER TABLE comes before nextval(): its lock keeps others from drawing numbers that the new
 * sequence makes again. */
const char* const kOutsideSequences = R"(
SELECT string_agg(format('%s.%I draws from %s', c.oid::regclass, attname, s.oid::regclass), ', ' ORDER BY c.oid, attnum),
       (array_agg(format('BEGIN; CREATE SEQUENCE %1$s; GRANT USAGE ON SEQUENCE %1$s TO ...; ALTER TABLE %2$s ALTER %3$I SET DEFAULT ...; '
                                'SELECT setval(%1$L, nextval(%4$L)); COMMIT;',
                         format('%I.%I', nspname, s.relname), c.oid::regclass, attname, s.oid::regclass) ORDER BY c.oid, attnum))[1]
FROM pg_namespace AS n JOIN pg_class AS c ON c.relnamespace = n.oid JOIN pg_attrdef AS a ON adrelid = c.oid
JOIN pg_attribute ON attrelid = adrelid AND attnum = adnum
JOIN pg_depend AS d ON d.classid = 'pg_attrdef'::regclass AND d.objid = a.oid AND d.refclassid = 'pg_class'::regclass
JOIN pg_class AS s ON s.oid = d.refobjid AND s.relkind = 'S'
WHERE n.oid = ANY ($1::regnamespace[]) AND s.relnamespace <> ALL ($1::regnamespace[]))";

std::string lines_of(const std::vector<std::string>& dependents)
{
    std::string lines;
    for (const std::string& dependent : dependents)
        lines += "\n    " + dependent;
    return lines;
}

} // namespace

std::vector<std::string> find_dependents(Connection& connection, const Shards& shards)
{
    std::vector<std::string> dependents;
    const std::string there =
        connection
            .query("SELECT coalesce(array_agg(s), '{}') FROM unnest($1::text[]) AS s "
                   "WHERE to_regnamespace(s) IS NOT NULL",
                   {schemas_of(shards)})
            .text(0, 0);
    for (const std::string& dependent : texts_of(connection.query(dependents_sql, {there})))
        dependents.push_back(visible(dependent));
    return dependents;
}

/* No hint to drop all: one may be a partition, with rows that clients have written. */
void require_no_dependents(Connection& connection, const Shards& shards)
{
    find_extensions_in(connection, schemas_of(shards)).raise_first();
    if (const std::string dependents = lines_of(find_dependents(connection, shards));
        !dependents.empty())
        throw Failure(
            connection.server() +
            ": objects of other schemas need the shard, and would not go with it:" + dependents +
            "\nHINT:  ALTER ... SET SCHEMA moves them into the schema. Those without rows "
            "can be dropped.");
}

void require_none_dropped(Connection& connection, const Shards& shards)
{
    find_extensions_in(connection, schemas_of(shards)).raise_first();
    if (const std::string dependents = lines_of(find_dependents(connection, shards));
        !dependents.empty())
        throw Failure(connection.server() +
                      ": objects of other schemas would be dropped, too:" + dependents);
}

void drop_shards(Connection& connection, const Shards& shards, const std::string& record)
{
    const Result tables = connection.query(R"(
        SELECT string_agg('ONLY ' || c.oid::regclass, ', ' ORDER BY c.oid) FROM unnest($1::text[]) AS s
        JOIN pg_class AS c ON relnamespace = to_regnamespace(s) WHERE relkind IN ('r', 'p'))",
                                           {schemas_of(shards)});
    if (!tables.is_null(0, 0))
        connection.run("LOCK TABLE " + tables.text(0, 0) + " IN ACCESS EXCLUSIVE MODE");
    require_none_dropped(connection, shards);
    std::vector<std::string> schemas = {record};
    for (const Shard& shard : shards)
        schemas.push_back(shard.quoted);
    drop_schemas(connection, schemas);
}

/* A warning, because the numbers may be meant to be those of one server. */
void tell_of_outside_sequences(Connection& source, const Shards& shards)
{
    const Result found = source.query(kOutsideSequences, {schemas_of(shards)});
    if (!found.text(0, 0).empty())
        warn(source.server() +
             ": sequences of other schemas do not move, so the other server makes numbers of its "
             "own, which can come twice: " +
             visible(found.text(0, 0)) +
             ".\nHINT:  A sequence in the schema moves with the shard: " +
             visible(found.text(0, 1)));
}
