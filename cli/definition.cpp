#include "definition.h"

#include <algorithm>
#include <functional>
#include <map>
#include <string_view>

#include "output.h"

namespace
{

/* Marks in the text: bytes that no statement has. */
constexpr char kName = '\1';
constexpr char kNumber = '\2';

bool is_word_part(char c)
{
    return std::isalnum(static_cast<unsigned char>(c)) || c == '_' || (c & 0x80) != 0;
}

/* Replaces the word where it stands alone and where the condition holds for its position. True if
 * there was one. */
bool replace_word(std::string& text, const std::string& word, char mark,
                  const std::function<bool(std::size_t)>& condition = nullptr)
{
    bool is_found = false;
    for (std::size_t at = 0; (at = text.find(word, at)) != std::string::npos; at++)
        if ((at == 0 || !is_word_part(text[at - 1])) && !is_word_part(text[at + word.size()]) &&
            (!condition || condition(at))) {
            text.replace(at, word.size(), 1, mark);
            is_found = true;
        }
    return is_found;
}

bool ends_with(std::string_view text, std::string_view end)
{
    return text.size() >= end.size() && text.substr(text.size() - end.size()) == end;
}

/* SCHEMA insta5, insta5.photos, 'insta5.table_id_seq'::regclass; but not 'insta5.x' */
bool is_schema(const std::string& sql, std::size_t at, std::size_t end)
{
    if (ends_with({sql.data(), at}, "SCHEMA "))
        return true;
    if (sql[end] != '.' || sql[at - 1] == '.')
        return false;
    if (sql[at - 1] != '\'')
        return true;
    for (end = sql.find('\'', end); sql.compare(end, 2, "''") == 0;)
        end = sql.find('\'', end + 2);
    return sql.compare(end, 6, "'::reg") == 0;
}

/* Whether the number behind this is a shard: snowflake_next_id(5, snowflake_shard(id) = 5 */
bool ends_before_shard(std::string_view sql)
{
    if (!ends_with(sql, ") = "))
        return ends_with(sql, "snowflake_next_id(") || ends_with(sql, "snowflake_next_ids(") ||
               ends_with(sql, "shard => ");
    std::size_t at = sql.size() - 3;
    int depth = 0;
    do {
        at--;
        depth += sql[at] == ')' ? 1 : sql[at] == '(' ? -1 : 0;
    } while (depth > 0 && at > 0);
    return ends_with(sql.substr(0, at), "snowflake_shard");
}

/* What the server keeps as text, and leaves as it is when a schema is renamed. */
bool is_text(const Entry& entry)
{
    return entry.type == "COMMENT" || entry.sql.find("\n    AS $") != std::string::npos;
}

void set_marks(Entry& entry, const Shard& origin)
{
    std::string& sql = entry.sql;
    const bool is_free_text = is_text(entry);
    for (const std::string& name : {origin.quoted, doubled(origin.quoted)})
        replace_word(sql, name, kName, [&](std::size_t at) {
            return is_free_text || is_schema(sql, at, at + name.size());
        });
    replace_word(sql, std::to_string(origin.number), kNumber, [&](std::size_t at) {
        const std::string_view before(sql.data(), at);
        return is_free_text ? ends_with(before, " IS 'next ID of shard ") /* of next_id() */
                            : ends_before_shard(before);
    });
}

std::string render(const std::string& marked, const Shard& shard)
{
    std::string sql;
    for (const char c : marked) {
        const bool is_in_string = !sql.empty() && sql.back() == '\'';
        if (c == kName)
            sql += is_in_string ? doubled(shard.quoted) : shard.quoted;
        else if (c == kNumber)
            sql += std::to_string(shard.number);
        else
            sql += c;
    }
    return sql;
}

} // namespace

Definition::Definition(Entries dump, const Shard& origin, Shard template_shard)
    : entries_(std::move(dump)), template_(std::move(template_shard))
{
    for (Entry& entry : entries_)
        set_marks(entry, origin);
}

std::string Definition::sql_for(const Shard& shard) const
{
    return render(sql_of(entries_), shard);
}

std::vector<Difference> Definition::compare(const Entries& dump, const Shard& shard) const
{
    const auto comparable = [&](Entry entry) {
        if (is_text(entry))
            for (const auto& name :
                 {template_.quoted, template_.schema, shard.quoted, shard.schema})
                replace_word(entry.sql, name, kName);
        return entry.sql;
    };
    std::multimap<std::string, const Entry*> present;
    for (const Entry& entry : dump)
        present.emplace(comparable(entry), &entry);

    std::vector<Difference> differences;
    for (Entry entry : entries_) {
        entry.sql = render(entry.sql, shard);
        const auto found = present.find(comparable(entry));
        if (found != present.end())
            present.erase(found);
        else
            differences.push_back({true, entry.type + " " + entry.name, entry.sql});
    }
    for (const auto& [sql, entry] : present)
        differences.push_back({false, entry->type + " " + entry->name, entry->sql});
    return differences;
}

std::vector<std::string> Definition::functions_naming_template() const
{
    std::vector<std::string> functions;
    for (Entry entry : entries_)
        if ((entry.type == "FUNCTION" || entry.type == "PROCEDURE") &&
            replace_word(entry.sql, template_.schema, kName))
            functions.push_back(entry.type + " " + entry.name);
    return functions;
}

std::vector<DifferentShard> find_different(Connection& connection, const Definition& definition,
                                           const std::vector<Shard>& shards)
{
    /* pg_dump reads the catalogue from end to end each time, and locks all the tables that it
     * dumps. */
    constexpr std::size_t kBatch = 100;
    Progress progress("compare", shards.size());
    std::vector<DifferentShard> different;
    for (std::size_t begin = 0; begin < shards.size(); begin += kBatch) {
        const std::size_t end = std::min(begin + kBatch, shards.size());
        std::vector<std::string> schemas;
        for (std::size_t i = begin; i < end; i++)
            schemas.push_back(shards[i].schema);
        auto dumps = dump_schemas(connection, schemas);
        for (std::size_t i = begin; i < end; i++, progress.step()) {
            auto differences = definition.compare(dumps[shards[i].schema], shards[i]);
            if (!differences.empty())
                different.push_back({shards[i], std::move(differences)});
        }
    }
    return different;
}
