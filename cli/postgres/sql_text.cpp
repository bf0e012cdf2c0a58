#include "postgres/sql_text.h"

#include <algorithm>
#include <cctype>
#include <cmath>

bool is_word_part(char c)
{
    return std::isalnum(static_cast<unsigned char>(c)) || c == '_' || (c & 0x80) != 0;
}

std::size_t end_of_quoted(std::string_view sql, std::size_t begin)
{
    /* A quote that stands twice is a quote in the text. Without an end, which the server does not
     * write, the rest of the text counts as quoted. */
    const char quote = sql[begin];
    std::size_t end = begin + 1;
    while (end < sql.size() &&
           (sql[end] != quote || sql.substr(end + 1, 1) == sql.substr(begin, 1)))
        end += sql[end] == quote ? 2 : 1;
    return std::min(end + 1, sql.size());
}

std::size_t end_of_token(std::string_view sql, std::size_t begin)
{
    const char c = sql[begin];
    if (c == '\'' || c == '"')
        return end_of_quoted(sql, begin);
    /* A quote in a comment begins no string. */
    if (c == '-' && sql.substr(begin, 2) == "--")
        return std::min(sql.find('\n', begin), sql.size());
    /* A $ within a name begins no string. */
    if (c != '$' || (begin > 0 && is_word_part(sql[begin - 1])))
        return begin + 1;
    std::size_t tag_end = begin + 1;
    while (tag_end < sql.size() && is_word_part(sql[tag_end]))
        tag_end++;
    if (tag_end == sql.size() || sql[tag_end] != '$')
        return begin + 1;
    /* The next one like it is the end: pg_dump chooses a tag that the body does not contain. */
    const std::string_view tag = sql.substr(begin, tag_end + 1 - begin);
    const std::size_t end = sql.find(tag, tag_end + 1);
    return end == std::string_view::npos ? sql.size() : end + tag.size();
}

/* Blanks keep the positions of the rest. */
std::string code_of(std::string sql)
{
    for (std::size_t at = 0; (at = sql.find_first_of("'\"", at)) != std::string::npos;) {
        const std::size_t end = end_of_quoted(sql, at);
        sql.replace(at, end - at, end - at, ' ');
        at = end;
    }
    return sql;
}

/* The result is at least 1: PostgreSQL reads a timeout of 0 as none. */
std::string milliseconds_of(double seconds)
{
    return std::to_string(std::max(1L, std::lround(seconds * 1000)));
}

std::string milliseconds_of(std::chrono::milliseconds time)
{
    return std::to_string(time.count());
}

std::string lock_timeout_sql(std::chrono::milliseconds timeout, bool is_local)
{
    return "SELECT set_config('lock_timeout', '" + milliseconds_of(timeout) + "', " +
           (is_local ? "true" : "false") + ") WHERE current_setting('lock_timeout') = '0'";
}

std::string is_utf8_sql(const std::string& name)
{
    return "(getdatabaseencoding() <> 'SQL_ASCII' OR " + name + R"( ~ E'^('
        '[\\u0001-\\u007f]|[\\u00c2-\\u00df][\\u0080-\\u00bf]|'
        '\\u00e0[\\u00a0-\\u00bf][\\u0080-\\u00bf]|[\\u00e1-\\u00ec\\u00ee\\u00ef][\\u0080-\\u00bf]{2}|'
        '\\u00ed[\\u0080-\\u009f][\\u0080-\\u00bf]|\\u00f0[\\u0090-\\u00bf][\\u0080-\\u00bf]{2}|'
        '[\\u00f1-\\u00f3][\\u0080-\\u00bf]{3}|\\u00f4[\\u0080-\\u008f][\\u0080-\\u00bf]{2})*$'))";
}

std::string as_utf8_sql(const std::string& text)
{
    return "CASE WHEN " + is_utf8_sql(text) + " THEN " + text + " ELSE regexp_replace(" + text +
           R"(, E'[^\\u0001-\\u007f]', '?', 'g') END)";
}
