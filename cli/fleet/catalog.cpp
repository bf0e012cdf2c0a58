#include "fleet/catalog.h"

#include <algorithm>
#include <map>
#include <mutex>
#include <set>

#include "base/output.h"
#include "base/quoting.h"
#include "base/suggestion.h"
#include "fleet/in_transit.h"
#include "postgres/extension.h"
#include "postgres/sql_text.h"
#include "sql/sql.h"

namespace
{

std::string is_readable_sql()
{
    return is_utf8_sql("n.nspname") + " AND " + is_utf8_sql("pg_get_userbyid(n.nspowner)");
}

/* Warns once for each server, as some verbs ask several times. */
void warn_of_unreadable(Connection& connection)
{
    const Shards unreadable = find_unreadable(connection);
    static std::mutex lock;
    static std::set<std::string> told;
    const std::lock_guard<std::mutex> locked(lock);
    if (unreadable.empty() || !told.insert(connection.server()).second)
        return;
    std::string schemas;
    for (const Shard& shard : unreadable)
        schemas += (schemas.empty() ? "" : ", ") + shard.schema + " of shard " +
                   std::to_string(shard.number);
    warn(connection.server() +
         ": left out, because the name of the schema or of its owner is not "
         "UTF-8: " +
         schemas + "\nHINT:  Give it another name.");
}

/* A shard that moves is in two databases, and open in one. A sequence that Citus has copied makes
 * no IDs here. is_direct: a table of another schema whose DEFAULT calls insta5.next_id() does not
 * make its own schema a shard. A shard number of NULL is computed, so it is not known here. IS NOT
 * TRUE: a call whose sequence has no row in pg_sequence counts, because the strict is_citus_copy()
 * returns NULL for it. The '' makes NOT IN () valid if no shard is closed; no schema has an empty
 * name. shard is a bigint, because Table::add() takes only that type for a number.
 *
 * A temporary schema is never a shard: any role may make temporary tables, and so would take a
 * number and give the command a schema to work in. */
std::string shards_sql(Connection& connection, const std::string& condition)
{
    require_installed(connection);
    std::string closed = "''";
    for (const InTransit& one : read_in_transit(connection))
        if (!one.is_open)
            closed += ", " + connection.literal(one.shard.schema);
    return R"(
        SELECT DISTINCT k.shard::bigint AS shard, n.nspname AS schema_name, n.oid AS schema
        FROM snowflake_internal.calls() AS k
        JOIN pg_namespace AS n ON n.oid = k.schema
        LEFT JOIN pg_sequence AS q ON q.seqrelid = k.seq
        WHERE k.is_direct AND k.shard IS NOT NULL
          AND snowflake_internal.is_citus_copy(q.seqmin, q.seqmax) IS NOT TRUE
          AND n.nspname !~ '^pg_(toast_)?temp_'
          AND n.nspname NOT IN ()" +
           closed + ") AND " + condition;
}

} // namespace

std::string open_shards_sql(Connection& connection)
{
    warn_of_unreadable(connection);
    return shards_sql(connection, is_readable_sql());
}

/* Only a database of encoding SQL_ASCII has such names. */
Shards find_unreadable(Connection& connection)
{
    if (!connection.is_ascii())
        return {};
    const Result rows = connection.query(
        "SELECT shard, encode(convert_to(schema_name, 'SQL_ASCII'), 'escape') FROM (" +
        shards_sql(connection, "NOT (" + is_readable_sql() + ")") + ") AS s ORDER BY 1, 2");
    Shards unreadable;
    for (int i = 0; i < rows.rows(); i++)
        unreadable.push_back({static_cast<int>(rows.number(i, 0)), rows.text(i, 1)});
    return unreadable;
}

std::string claim_sql(const Connection& connection, const Shards& shards)
{
    std::vector<std::string> numbers;
    for (const Shard& shard : shards)
        numbers.push_back(std::to_string(shard.number));
    return "SELECT snowflake_internal.claim_shards(" + connection.literal(sql_array(numbers)) +
           ", " + connection.literal(sql_array(schemas_in(shards))) + ")";
}

std::vector<Shard> read_shards(Connection& connection)
{
    /* The server quotes the names, because its version decides which words are keywords.
     * PQescapeIdentifier() quotes all names, so texts with them would differ from the server's. */
    const Result rows = connection.query("SELECT *, quote_ident(schema_name) FROM (" +
                                         open_shards_sql(connection) + ") AS open ORDER BY 1, 2");
    std::vector<Shard> shards;
    for (int i = 0; i < rows.rows(); i++)
        shards.push_back({static_cast<int>(rows.number(i, 0)), rows.text(i, 1), rows.text(i, 3),
                          rows.text(i, 2)});
    return shards;
}

namespace
{

/* Shards whose number another shard of the server has. */
Shards sharing_a_number(const Shards& shards)
{
    std::map<int, int> counts;
    for (const Shard& shard : shards)
        counts[shard.number]++;
    Shards sharing;
    for (const Shard& shard : shards)
        if (counts[shard.number] > 1)
            sharing.push_back(shard);
    return sharing;
}

} // namespace

std::map<int, std::string> find_twice(Connection& connection, const std::vector<Shard>& shards)
{
    const Shards sharing = sharing_a_number(shards);
    if (sharing.empty())
        return {};
    std::vector<std::string> numbers;
    for (const Shard& shard : sharing)
        numbers.push_back(std::to_string(shard.number));
    const Result rows = connection.query("SELECT shard, schema, owner, " + as_utf8_sql("objects") +
                                             " FROM (" + makers_sql + ") AS m ORDER BY 1, 2",
                                         {sql_array(numbers), sql_array(schemas_in(sharing))});
    std::map<int, std::string> schemas;
    std::map<int, std::string> objects;
    for (int i = 0; i < rows.rows(); i++) {
        const auto number = static_cast<int>(rows.number(i, 0));
        schemas[number] +=
            (schemas[number].empty() ? "" : ", ") + rows.text(i, 1) + " of role " + rows.text(i, 2);
        objects[number] += rows.text(i, 3);
    }
    std::map<int, std::string> texts;
    for (const auto& [number, names] : schemas)
        texts[number] = "shard " + std::to_string(number) + " has several schemas on " +
                        connection.server() + ": " + names + objects[number] +
                        "\nHINT:  Decide which schema is the shard, and remove the objects of the "
                        "others.";
    return texts;
}

void require_one_schema_each(Connection& connection, const std::vector<Shard>& shards,
                             const ShardSet& wanted)
{
    std::string problems;
    for (const auto& [number, text] : find_twice(connection, shards))
        if (wanted.count(number) > 0)
            problems += text + "\n";
    if (!problems.empty())
        throw Failure(problems + "Nothing was done.");
}

Shards find_missing(const Shards& open, const Shards& shards)
{
    Shards missing;
    for (const Shard& shard : shards)
        if (std::none_of(open.begin(), open.end(), [&](const Shard& one) {
                return one.number == shard.number && one.schema == shard.schema;
            }))
            missing.push_back(shard);
    return missing;
}

Shard find_shard(const std::vector<Shard>& shards, const std::string& schema,
                 const std::string& server)
{
    std::vector<Shard> found;
    std::vector<std::string> schemas;
    for (const Shard& shard : shards) {
        schemas.push_back(shard.schema);
        if (shard.schema == schema)
            found.push_back(shard);
    }
    if (found.empty())
        throw Failure("schema " + visible(schema) + " is no shard of " + server +
                      schema_suggestion(schema, schemas) +
                      "\nHINT:  snowflake_create_shard() makes a schema a shard.");
    /* A clone or a move could keep only one of the numbers. */
    if (found.size() > 1)
        throw Failure("schema " + visible(schema) + " makes IDs of several shards: " +
                      std::to_string(found[0].number) + ", " + std::to_string(found[1].number));
    return found[0];
}
