#include "postgres/error_text.h"

#include <algorithm>

#include "base/match.h"

std::string indented(const std::string& text)
{
    std::string lines;
    for (const char c : text)
        lines += c == '\n' ? "\n    " : std::string(1, c);
    return lines;
}

namespace
{

/* The text of libpq between the message and the next field: the line of the statement and a mark
 * below it, or the number of the character. It has no line break of others. */
std::string position_of(const PGresult* result, const std::string& message)
{
    if (PQresultErrorField(result, PG_DIAG_STATEMENT_POSITION) == nullptr &&
        PQresultErrorField(result, PG_DIAG_INTERNAL_POSITION) == nullptr)
        return "";
    const std::string all = PQresultErrorMessage(result);
    if (all.rfind(message, 0) != 0)
        return "";
    std::size_t end = all.find('\n', message.size());
    if (all.rfind("\nLINE ", message.size()) == message.size()) /* two lines */
        end = all.find('\n', all.find('\n', message.size() + 1) + 1);
    return end == std::string::npos ? "" : all.substr(message.size(), end - message.size());
}

const std::string kFunction = "\nPL/pgSQL function ";

/* context: from the line of the function on. */
bool is_own_function(const std::string& context)
{
    return !match(context, "^PL/pgSQL function snowflake_(move_[0-9]+|split|global|internal)[.]")
                .empty();
}

/* The CONTEXT without the statements of the command's own functions. The innermost function comes
 * first, and its statement stands above the line with its name. */
std::string without_own_sql(const std::string& context)
{
    std::string text = "\n" + context;
    for (std::size_t from = 0, at = text.find(kFunction); at != std::string::npos;
         from = at, at = text.find(kFunction, at + 1)) {
        if (!is_own_function(text.substr(at + 1)))
            continue;
        std::size_t begin = at;
        for (const char* mark :
             {"\nSQL statement \"", "\nSQL expression \"", "\nPL/pgSQL assignment \""})
            begin = std::min(begin, text.find(mark, from));
        text.erase(begin, at - begin);
        at = begin;
    }
    return text.substr(1);
}

} // namespace

std::string without_text(std::string error, const std::string& begin)
{
    for (const char* mark :
         {"\nQUERY:  ", "\nCONTEXT:  SQL statement \"", "\n    SQL statement \"",
          "\nCONTEXT:  PL/pgSQL assignment \"", "\n    PL/pgSQL assignment \""}) {
        const std::size_t at = error.find(mark + begin);
        if (at == std::string::npos)
            continue;
        /* The library's own line of the CONTEXT is kept: see tell_role() in src. */
        const std::size_t end =
            std::min({error.find("\nCONTEXT:  ", at + 1), error.find("\nSERVER:  ", at),
                      error.find("\n    The SQL ", at)});
        error.erase(at, end == std::string::npos ? end : end - at);
    }
    return error;
}

std::string text_of(const PGresult* result)
{
    const auto field = [&](int code) {
        const char* text = PQresultErrorField(result, code);
        return std::string(text == nullptr ? "" : text);
    };
    const std::string message = field(PG_DIAG_MESSAGE_PRIMARY);
    if (message.empty()) /* of libpq itself */
        return indented(trimmed(PQresultErrorMessage(result)));
    const std::string severity = field(PG_DIAG_SEVERITY) + ":  ";
    const std::string context = field(PG_DIAG_CONTEXT);
    const std::string query = field(PG_DIAG_INTERNAL_QUERY);
    const bool is_own = !query.empty() && is_own_function(context);
    std::string text = severity + indented(message);
    if (!is_own)
        text += position_of(result, severity + message);
    const auto add = [&](const char* heading, const std::string& value) {
        if (const std::string part = trimmed(value); !part.empty())
            text += std::string("\n") + heading + ":  " + indented(part);
    };
    add("DETAIL", field(PG_DIAG_MESSAGE_DETAIL));
    add("HINT", field(PG_DIAG_MESSAGE_HINT));
    if (!is_own)
        add("QUERY", query);
    if (PQresultStatus(result) == PGRES_FATAL_ERROR)
        add("CONTEXT", without_own_sql(context));
    return text;
}

std::string trimmed(const std::string& message)
{
    return message.substr(0, message.find_last_not_of(" \n") + 1);
}
