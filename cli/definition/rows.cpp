#include "definition/rows.h"

#include <algorithm>

#include "base/quoting.h"
#include "base/timeouts.h"
#include "definition/marks.h"
#include "postgres/sql_text.h"
#include "sql/sql.h"

namespace
{

/* A session keeps some kB of each table that it has read, until it ends. */
constexpr std::size_t kBatch = 100;

/* As pg_dump does: a constant is written with all its digits. Nested loops over indexes are the
 * right plan for a batch, also before an ANALYZE. */
const char* const kSettings =
    "SET extra_float_digits = 3; SET DateStyle = ISO; SET IntervalStyle = postgres; "
    "SET bytea_output = hex; SET jit = off; SET enable_hashjoin = off; SET enable_mergejoin = off";

std::string marked(std::string kind, const std::string& sql, const Shard& shard,
                   const Shard& template_shard)
{
    if (kind.empty())
        return sql;
    Entry entry = mark({std::move(kind), "", sql}, shard);
    mark_in_text(entry, template_shard);
    return entry.type + entry.sql;
}

std::string joined_rows(std::vector<std::string> rows)
{
    /* The order of the server is that of OIDs. */
    std::sort(rows.begin(), rows.end());
    std::string text;
    for (const std::string& row : rows)
        text += row + '\0';
    return text;
}

std::vector<std::string> read_batch(Connection connection, const Shards& shards,
                                    const Shard& template_shard)
{
    std::vector<std::vector<std::string>> rows(shards.size());
    connection.run(kSettings);
    connection.run(lock_timeout_sql(timeouts::kReadLock, false));
    const Result result = connection.query(
        definition_sql,
        {connection.query("SELECT $1::regnamespace[]::oid[]", {schemas_of(shards)}).text(0, 0)});
    for (int i = 0; i < result.rows(); i++) {
        const auto at = static_cast<std::size_t>(result.number(i, 0) - 1);
        rows[at].push_back(
            marked(result.text(i, 1), result.text(i, 2), shards[at], template_shard));
    }
    std::vector<std::string> texts;
    for (auto& some : rows)
        texts.push_back(joined_rows(std::move(some)));
    return texts;
}

} // namespace

std::vector<std::string> read_rows(const Connection& connection, const Shards& shards,
                                   const Shard& template_shard, const std::function<void()>& step)
{
    std::vector<std::string> texts;
    for (std::size_t at = 0; at < shards.size(); at += kBatch) {
        const Shards batch(shards.begin() + static_cast<std::ptrdiff_t>(at),
                           shards.begin() +
                               static_cast<std::ptrdiff_t>(std::min(at + kBatch, shards.size())));
        try {
            for (std::string& text :
                 read_batch(Connection(connection.dsn_of_server()), batch, template_shard))
                texts.push_back(std::move(text));
        } catch (const ServerError&) {
            /* An object that was dropped after its row was read, or is locked. */
            texts.resize(at + batch.size());
        }
        for (std::size_t i = 0; i < batch.size(); i++)
            step();
    }
    return texts;
}
