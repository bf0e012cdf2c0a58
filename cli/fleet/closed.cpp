#include "fleet/closed.h"

#include <map>

#include "base/quoting.h"

namespace
{

/* Subscriptions that write to a table, or to a partitioned table if its publication sends changes
 * by that. A disabled subscription keeps its position, at which it can continue elsewhere; dropping
 * it would lose the changes after that. */
const char* const kWriters = R"(
SELECT format('subscription %I writes to table %s, and the fence does not stop its worker', subname, min(srrelid::regclass::text)),
       format('ALTER SUBSCRIPTION %I DISABLE; docs/move-needs.md (Subscriptions that write to a shard) says how it goes on at the target', subname)
FROM pg_subscription_rel JOIN pg_subscription AS s ON s.oid = srsubid
JOIN pg_class AS c ON c.oid = srrelid JOIN pg_namespace AS n ON n.oid = relnamespace
WHERE subenabled AND subname <> $2 AND nspname = ANY ($1::name[])
GROUP BY subname ORDER BY subname)";

/* By pg_depend, which has an index on the schema: there may be thousands of shards, and each set of
 * a list asks. */
const char* const kOpenParents = R"(
WITH shards AS (SELECT oid FROM pg_namespace WHERE nspname = ANY ($1::name[]))
SELECT format('table %s %s table %s, and the fence does not stop writes to that one', c.oid::regclass,
              CASE WHEN c.relispartition THEN 'is a partition of' ELSE 'inherits from' END, p.oid::regclass),
       CASE WHEN c.relispartition THEN format('ALTER TABLE %s DETACH PARTITION %s%s;', p.oid::regclass, c.oid::regclass,
                                              CASE WHEN inhdetachpending THEN ' FINALIZE' END)
            ELSE format('ALTER TABLE %s NO INHERIT %s;', c.oid::regclass, p.oid::regclass) END
FROM shards JOIN pg_depend AS d ON d.refclassid = 'pg_namespace'::regclass AND d.refobjid = shards.oid AND d.classid = 'pg_class'::regclass
JOIN pg_class AS c ON c.oid = d.objid JOIN pg_inherits AS i ON i.inhrelid = c.oid JOIN pg_class AS p ON p.oid = i.inhparent
WHERE c.relkind IN ('r', 'p') AND p.relnamespace NOT IN (TABLE shards)
ORDER BY c.oid::regclass::text, i.inhseqno)";

/* $1, $2: numbers and schemas of shards; $3, $4: trigger and function of the fence, $5: tgenabled,
 * one or several letters. A partition and its parent each have a trigger. */
const char* const kTriggers = R"(
SELECT c.oid::regclass, title,
       format('CREATE OR REPLACE TRIGGER %1$I BEFORE INSERT OR UPDATE OR DELETE OR TRUNCATE ON %2$s FOR EACH STATEMENT '
              'EXECUTE FUNCTION %3$s(%4$L); ALTER TABLE ONLY %2$s ENABLE %5$sTRIGGER %1$I;',
              $3::text, c.oid::regclass, $4::text, title, CASE $5 WHEN 'A' THEN 'ALWAYS ' END)
FROM unnest($1::integer[], $2::text[]) AS s (number, name) JOIN pg_namespace ON nspname = name
JOIN pg_class AS c ON relnamespace = pg_namespace.oid, format('shard %s, schema %s', number, name) AS title
WHERE relkind IN ('r', 'p') AND NOT EXISTS (
    SELECT FROM pg_trigger WHERE tgrelid = c.oid AND tgname = $3 AND tgfoid = to_regproc($4) AND strpos($5, tgenabled::text) > 0)
ORDER BY c.oid)";

/* The fence of a source and of a split fires always; that of a server that follows does not fire
 * for the worker. */
void check_triggers(Connection& connection, const InTransit& first, const Shards& shards,
                    std::vector<MoveFinding>& findings)
{
    const bool is_split = first.kind == InTransit::Kind::split;
    std::vector<std::string> numbers;
    for (const Shard& shard : shards)
        numbers.push_back(std::to_string(shard.number));
    const Result tables = connection.query(
        kTriggers, {sql_array(numbers), sql_array(schemas_in(shards)),
                    is_split ? "snowflake_split" : "snowflake_move",
                    first.record + (is_split && !first.is_source ? ".staying" : ".leaving"),
                    first.motion() == Motion::reverse ? "OA" : "A"});
    for (int i = 0; i < tables.rows(); i++)
        findings.push_back({"fence", "table " + tables.text(i, 0),
                            tables.text(i, 1) + ", is closed here, and the trigger of the table "
                                                "does not stop every write",
                            tables.text(i, 2) + " Rows that were written meanwhile are on no other "
                                                "server: --complete looks for them."});
}

} // namespace

Obstacles find_writing_subscriptions(Connection& connection, const Shards& shards,
                                     const std::string& own)
{
    Obstacles found;
    found.read(connection, kWriters, {sql_array(schemas_in(shards)), own});
    return found;
}

Obstacles find_open_parents(Connection& connection, const Shards& shards)
{
    Obstacles found;
    found.read(connection, kOpenParents, {sql_array(schemas_in(shards))});
    return found;
}

void check_closed(Connection& connection, const std::vector<InTransit>& shards,
                  std::vector<MoveFinding>& findings)
{
    std::map<std::string, std::pair<InTransit, Shards>> records;
    for (const InTransit& one : shards)
        if (!one.is_open && one.motion() != Motion::moving)
            records.try_emplace(one.record, one, Shards())
                .first->second.second.push_back(one.shard);
    for (const auto& [record, closed] : records) {
        const auto& [first, set] = closed;
        check_triggers(connection, first, set, findings);
        Obstacles found = find_writing_subscriptions(connection, set, record);
        found.add(find_open_parents(connection, set));
        for (const Obstacle& one : found)
            findings.push_back({"fence", "schema " + record, one.problem, one.hint});
    }
}
