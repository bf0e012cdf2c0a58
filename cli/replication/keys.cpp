#include "replication/keys.h"

#include <algorithm>

#include "base/output.h"
#include "base/timeouts.h"
#include "cutover/waiting.h"
#include "postgres/row_text.h"
#include "sql/sql.h"

namespace
{

/* The keys whose triggers fire so: O, or A for always. */
const char* const kLeavingKeys = R"(
SELECT DISTINCT f.oid FROM pg_constraint AS f
JOIN pg_class AS c ON c.oid = conrelid JOIN pg_class AS p ON p.oid = confrelid
JOIN pg_trigger ON tgconstraint = f.oid AND tgrelid = conrelid
WHERE connamespace = ANY ($1::regnamespace[]) AND contype = 'f' AND convalidated AND c.relkind = 'r'
AND p.relnamespace <> ALL ($1::regnamespace[]) AND tgenabled = $2
ORDER BY 1)";

/* More are not sent to the other server. */
constexpr int kMostValues = 100000;
constexpr int kShown = 10;

struct Key {
    Key(const Result& keys, int i)
        : table(keys.text(i, 0)), name(keys.text(i, 1)), other(keys.text(i, 2)),
          violations(keys.text(i, 3)), one_violation(keys.text(i, 4)), referred(keys.text(i, 5)),
          columns(keys.text(i, 6)), rows(keys.text(i, 7)), schema(keys.text(i, 8)),
          oid(keys.text(i, 9)), as_owner(keys.text(i, 10)), is_foreign(keys.flag(i, 11))
    {
    }

    const std::string table, name, other, violations, one_violation, referred, columns, rows,
        schema, oid, as_owner; /* of the table */
    const bool is_foreign;     /* the other table has another owner */
};

std::vector<Key> read_keys(Connection& connection, const Shards& shards, bool only_leaving)
{
    const Result keys =
        connection.query(foreign_keys_sql, {schemas_of(shards), only_leaving ? "true" : "false"});
    std::vector<Key> found;
    for (int i = 0; i < keys.rows(); i++)
        found.emplace_back(keys, i);
    return found;
}

/* Reads in a transaction of its own: an error ends no other check. Values are written as the other
 * server reads them. table: an OID, because its name can be that of another table by now. */
Result read_within(Connection& connection, Clock::time_point deadline, const std::string& table,
                   const std::string& sql)
{
    const auto left =
        std::chrono::duration_cast<std::chrono::milliseconds>(deadline - Clock::now()).count();
    connection.run(
        "BEGIN READ ONLY; " + value_text_settings("SET LOCAL") +
        "SET LOCAL statement_timeout = " + std::to_string(std::max<std::int64_t>(left, 1)));
    Result rows = read_rows(connection, table, sql, 1);
    connection.rollback();
    return rows;
}

void note(Connection& connection, const Key& key, const ServerError& error,
          UncheckedKeys& unchecked)
{
    connection.rollback();
    if (error.sqlstate == kQueryCanceled || error.sqlstate == kLockTimeout)
        unchecked.add_late(key.table, key.name);
    else if (error.sqlstate == kInsufficientPrivilege) /* of a policy, for example */
        unchecked.add_unread(key.schema, key.table, key.name, first_line(error.what()));
    else
        throw error;
}

} // namespace

void UncheckedKeys::add_late(const std::string& table, const std::string& key)
{
    late_.insert(table + " " + key);
}

void UncheckedKeys::add_unread(const std::string& schema, const std::string& table,
                               const std::string& key, const std::string& reason)
{
    if (first_.empty())
        first_ = "foreign key " + visible(key) + " of table " + visible(table) +
                 " was not checked: " + reason;
    unread_.insert(table + " " + key);
    schemas_.insert(schema);
}

UncheckedKeys::~UncheckedKeys()
{
    if (!first_.empty())
        warn(first_ + (unread_.size() == 1
                           ? ""
                           : "; nor were " + count_of(unread_.size() - 1, "more key") + ", of " +
                                 count_of(schemas_.size(), "shard")));
    if (!late_.empty())
        warn(count_of(late_.size(), "foreign key") + " could not be checked within " +
             std::to_string(timeouts::kKeys.count()) + " s, or because of locks");
}

Obstacles find_broken_references(Connection& connection, const Shards& shards,
                                 UncheckedKeys& unchecked, bool only_leaving)
{
    const Clock::time_point deadline = Clock::now() + timeouts::kKeys;
    Obstacles found;
    for (const Key& key : read_keys(connection, shards, only_leaving))
        try {
            /* A query of both tables would run code of one owner with the rights of the other. The
             * target checks the key. */
            if (key.is_foreign)
                unchecked.add_unread(key.schema, key.table, key.name,
                                     "table " + visible(key.other) + " has another owner");
            else if (read_within(connection, deadline, key.oid, key.one_violation).rows() > 0)
                found.add(connection.server(),
                          "rows of table " + visible(key.table) + " violate its foreign key " +
                              visible(key.name) + " to table " + visible(key.other),
                          visible(key.as_owner + key.violations) + "; shows them.");
        } catch (const ServerError& error) {
            note(connection, key, error, unchecked);
        }
    return found;
}

/* The tables are on two servers. So the values go to the other one, which compares them as the key
 * does. */
Obstacles find_missing_references(Connection& source, Connection& target, const Shards& shards,
                                  UncheckedKeys& unchecked)
{
    const Clock::time_point deadline = Clock::now() + timeouts::kKeys;
    Obstacles found;
    for (const Key& key : read_keys(source, shards, true))
        try {
            const Result lacking = target.query(lacking_sql, {key.other, key.columns});
            if (lacking.rows() == 0)
                continue; /* the trial of the definition makes the key, or says why it cannot */
            const std::vector<std::string> values =
                texts_of(read_within(source, deadline, key.oid,
                                     key.referred + " LIMIT " + std::to_string(kMostValues + 1)));
            if (values.size() > kMostValues) {
                unchecked.add_late(key.table, key.name);
                continue;
            }
            const std::vector<std::string> missing = texts_of(read_within(
                target, deadline, lacking.text(0, 0),
                "SELECT value FROM unnest(" + target.literal(sql_array(values)) + "::text[]) " +
                    lacking.text(0, 1) + " LIMIT " + std::to_string(kShown)));
            if (!missing.empty())
                found.add(target.server(),
                          "table " + visible(key.other) + " lacks rows to which table " +
                              visible(key.table) + " of the source refers by its foreign key " +
                              visible(key.name) + ", with the key " +
                              visible(joined(missing, ", ")) +
                              (missing.size() == kShown ? " and perhaps more" : ""),
                          "Insert them there. On " + source.server() + ", " +
                              visible(key.as_owner + key.rows) +
                              source.literal(sql_array(missing)) + "); shows them.");
        } catch (const ServerError& error) {
            source.rollback();
            note(target, key, error, unchecked);
        }
    return found;
}

void check_replicated_rows(Connection& follower, const Shards& shards)
{
    for (const std::string& key : texts_of(follower.query(kLeavingKeys, {schemas_of(shards), "O"})))
        follower.query("SELECT snowflake_internal.fire_key($1, true)", {key});
}

void end_check_of_replicated_rows(Connection& follower, const Shards& shards,
                                  Clock::time_point deadline)
{
    for (const std::string& key : texts_of(follower.query(kLeavingKeys, {schemas_of(shards), "A"})))
        lock_and_run_naming(follower, deadline, [&] {
            follower.query("SELECT snowflake_internal.fire_key($1, false)", {key});
        });
}
