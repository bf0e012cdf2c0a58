#include "move/references.h"

#include <algorithm>

#include "base/clock.h"
#include "base/output.h"
#include "base/quoting.h"
#include "move/row_text.h"

namespace
{

/* As RI_Initial_Check() looks for them: a row with a NULL in the key refers to nothing. Keys that
 * are NOT VALID are made again as they are. The operators are those of the key, whatever the
 * search_path is. Keys with PERIOD (PostgreSQL 18) compare no single rows. Two texts: of a query
 * with one row if there is a violation, and of one that shows all. */
const char* const kKeys = R"(
SELECT conrelid::regclass, quote_ident(conname), confrelid::regclass, violations, 'SELECT 1::text FROM (' || violations || ' LIMIT 1) AS v'
FROM pg_constraint AS f
JOIN pg_class AS c ON c.oid = conrelid JOIN pg_class AS p ON p.oid = confrelid
CROSS JOIN LATERAL (SELECT CASE c.relkind WHEN 'p' THEN '' ELSE 'ONLY ' END, CASE p.relkind WHEN 'p' THEN '' ELSE 'ONLY ' END) AS o (of_one, to_one),
LATERAL (SELECT format('SELECT %s FROM %s%s AS t WHERE %s AND NOT EXISTS (SELECT FROM %s%s AS r WHERE %s)',
                       string_agg(format('t.%I', a.attname), ', ' ORDER BY k.n), of_one, conrelid::regclass,
                       string_agg(format('t.%I IS NOT NULL', a.attname), ' AND ' ORDER BY k.n), to_one, confrelid::regclass,
                       string_agg(format('r.%I OPERATOR(%I.%s) t.%I', r.attname, n.nspname, oprname, a.attname), ' AND ' ORDER BY k.n))
         FROM unnest(conkey, confkey, conpfeqop) WITH ORDINALITY AS k (referring, referred, op, n)
         JOIN pg_attribute AS a ON a.attrelid = conrelid AND a.attnum = k.referring
         JOIN pg_attribute AS r ON r.attrelid = confrelid AND r.attnum = k.referred
         JOIN pg_operator ON pg_operator.oid = k.op JOIN pg_namespace AS n ON n.oid = oprnamespace) AS q (violations)
WHERE connamespace = $1::regnamespace AND contype = 'f' AND conparentid = 0 AND convalidated
AND coalesce(to_jsonb(f) ->> 'conperiod', 'false') = 'false'
ORDER BY 1, 2)";

constexpr auto kMostTime = std::chrono::seconds(30);
const std::string kQueryCanceled = "57014";
const std::string kInsufficientPrivilege = "42501";

/* In a transaction of its own: an error ends no other check. */
void begin(Connection& source, Clock::time_point deadline)
{
    const auto left =
        std::chrono::duration_cast<std::chrono::milliseconds>(deadline - Clock::now()).count();
    source.run("BEGIN READ ONLY; SET LOCAL row_security = off; SET LOCAL statement_timeout = " +
               std::to_string(std::max<std::int64_t>(left, 1)));
}

} // namespace

std::vector<Obstacle> find_broken_references(Connection& source, const Shard& shard)
{
    const Result keys = source.query(kKeys, {shard.quoted});
    const Clock::time_point deadline = Clock::now() + kMostTime;
    std::vector<Obstacle> found;
    std::size_t unknown = 0;
    for (int i = 0; i < keys.rows(); i++) {
        begin(source, deadline);
        try {
            if (read_rows(source, keys.text(i, 0), keys.text(i, 4), 1).rows() > 0)
                found.push_back({source.server(),
                                 "rows of table " + visible(keys.text(i, 0)) +
                                     " violate its foreign key " + visible(keys.text(i, 1)) +
                                     " to table " + visible(keys.text(i, 2)),
                                 visible(keys.text(i, 3)) + "; shows them."});
        } catch (const ServerError& error) {
            /* The owner may not read the other table. The target checks the key. */
            if (error.sqlstate != kInsufficientPrivilege && error.sqlstate != kQueryCanceled)
                throw;
            unknown += error.sqlstate == kQueryCanceled ? 1 : 0;
        }
        source.rollback();
    }
    if (unknown > 0)
        warn(source.server() + ": " + count_of(unknown, "foreign key") + " of schema " +
             visible(shard.schema) + " could not be checked within 30 s");
    return found;
}
