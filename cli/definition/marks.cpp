#include "definition/marks.h"

#include <functional>
#include <optional>
#include <string_view>

#include "base/quoting.h"
#include "postgres/sql_text.h"

namespace
{

bool ends_with(std::string_view text, std::string_view end)
{
    return text.size() >= end.size() && text.substr(text.size() - end.size()) == end;
}

/* Replaces the word where it stands alone and where the condition holds for its position, which is
 * that before anything is replaced. Not insta5 in insta50, nor 5 in 15. In one pass, because the
 * owner of a shard can write the name a million times into a view. */
void replace_word(std::string& text, const std::string& word, char mark,
                  const std::function<bool(std::size_t)>& condition = nullptr)
{
    std::string made;
    std::size_t copied = 0;
    for (std::size_t at = 0; (at = text.find(word, at)) != std::string::npos;)
        if ((at == 0 || !is_word_part(text[at - 1])) && !is_word_part(text[at + word.size()]) &&
            (!condition || condition(at))) {
            made.append(text, copied, at - copied) += mark;
            copied = at += word.size();
        } else {
            at++;
        }
    text = made.append(text, copied);
}

/* Whether the number behind this is a shard: snowflake_next_id(5, snowflake_shard(id) = 5 */
bool ends_before_shard(std::string_view sql)
{
    if (!ends_with(sql, ") = "))
        return ends_with(sql, "snowflake_next_id(") || ends_with(sql, "snowflake_next_ids(") ||
               ends_with(sql, "snowflake_settled_id(") || ends_with(sql, "shard => ");
    std::size_t at = sql.size() - 3;
    int depth = 0;
    do {
        at--;
        depth += sql[at] == ')' ? 1 : sql[at] == '(' ? -1 : 0;
    } while (depth > 0 && at > 0);
    return ends_with(sql.substr(0, at), "snowflake_shard");
}

/* The token at a position. Positions must increase, so all tokens are found in one pass. */
class Tokens
{
public:
    explicit Tokens(const std::string& sql) : sql_(sql) {}

    Range at(std::size_t position)
    {
        while (token_.end <= position)
            token_ = {token_.end, end_of_token(sql_, token_.end)};
        return token_;
    }

private:
    const std::string& sql_;
    Range token_ = {0, 0};
};

/* SCHEMA insta5, insta5.photos, 'insta5.table_id_seq'::regclass; but not 'insta5.x'. A constant
 * counts only if it is cast to regclass and the like: the server keeps the OID of that, and writes
 * its name. Any other constant is a text. After a point stands a column, not a schema. */
bool is_schema(const std::string& sql, Tokens& tokens, std::size_t at, std::size_t end)
{
    const Range token = tokens.at(at);
    if (sql[token.begin] == '\'')
        return at == token.begin + 1 && sql[end] == '.' && sql.compare(token.end, 5, "::reg") == 0;
    return ends_with({sql.data(), at}, "SCHEMA ") ||
           (sql[end] == '.' && (at == 0 || sql[at - 1] != '.'));
}

bool is_function(const Entry& entry)
{
    return entry.type == "FUNCTION" || entry.type == "PROCEDURE";
}

/* The text that the server keeps as it was given: a comment, the body of a function between $$.
 * None for a function with an SQL body (BEGIN ATOMIC, RETURN): the server keeps that parsed, and
 * its shard numbers are marked. */
std::optional<Range> text_of(const Entry& entry)
{
    if (entry.type == "COMMENT")
        return Range{0, entry.sql.size()};
    const std::string before = "\n    AS $";
    const std::size_t begin = is_function(entry) ? entry.sql.find(before) : std::string::npos;
    if (begin == std::string::npos)
        return {};
    const std::size_t tag = begin + before.size() - 1;
    const std::size_t body = entry.sql.find('$', tag + 1) + 1;
    return Range{body, std::min(entry.sql.find(entry.sql.substr(tag, body - tag) + ";\n", body),
                                entry.sql.size())};
}

} // namespace

std::string mark_number(std::string sql, int number)
{
    const std::string code = code_of(sql);
    replace_word(sql, std::to_string(number), kNumberMark, [&](std::size_t at) {
        return ends_before_shard({code.data(), at});
    });
    return sql;
}

Entry mark(Entry entry, const Shard& shard)
{
    std::string& sql = entry.sql;
    if (entry.type == "COMMENT")
        replace_word(sql, std::to_string(shard.number), kNumberMark, [&](std::size_t at) {
            return ends_with({sql.data(), at}, " IS 'next ID of shard "); /* of next_id() */
        });
    else if (!text_of(entry))
        sql = mark_number(sql, shard.number);
    /* The second form is that within a constant, where the quotes of a name are doubled. */
    for (const std::string& name : {shard.quoted, doubled(shard.quoted)}) {
        Tokens tokens(sql);
        replace_word(sql, name, kNameMark, [&](std::size_t at) {
            return entry.type == "COMMENT" || is_function(entry) ||
                   is_schema(sql, tokens, at, at + name.size());
        });
        replace_word(entry.name, name, kNameMark);
    }
    mark_in_text(entry, shard);
    return entry;
}

void mark_in_text(Entry& entry, const Shard& other)
{
    /* A body can have the name without quotes, as a part of a constant or of a comment. */
    for (const auto& name : {other.quoted, other.schema})
        if (const auto text = text_of(entry)) {
            std::string body = entry.sql.substr(text->begin, text->end - text->begin);
            replace_word(body, name, kNameMark);
            entry.sql.replace(text->begin, text->end - text->begin, body);
        }
}

bool is_marked_in_text(const Entry& entry)
{
    const auto text = text_of(entry);
    return text && entry.sql.find(kNameMark, text->begin) < text->end;
}

std::string unmark(const std::string& marked, const Shard& shard)
{
    std::string sql;
    for (const char c : marked) {
        const bool is_in_string = !sql.empty() && sql.back() == '\'';
        if (c == kNameMark)
            sql += is_in_string ? doubled(shard.quoted) : shard.quoted;
        else if (c == kNumberMark)
            sql += std::to_string(shard.number);
        else
            sql += c;
    }
    return sql;
}
