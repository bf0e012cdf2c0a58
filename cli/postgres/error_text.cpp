#include "postgres/error_text.h"

#include <algorithm>

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

} // namespace

std::string without_text(std::string error, const std::string& begin)
{
    for (const char* mark :
         {"\nQUERY:  ", "\nCONTEXT:  SQL statement \"", "\n    SQL statement \""}) {
        const std::size_t at = error.find(mark + begin);
        if (at == std::string::npos)
            continue;
        /* The library's own line of the CONTEXT is kept: see tell_role(). */
        const std::size_t end =
            std::min({error.find("\nCONTEXT:  ", at + 1), error.find("\nSERVER:  ", at),
                      error.find("\n    The SQL works with the rights of role ", at)});
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
    std::string text = severity + indented(message) + position_of(result, severity + message);
    const auto add = [&](const char* heading, int code) {
        if (const std::string value = trimmed(field(code)); !value.empty())
            text += std::string("\n") + heading + ":  " + indented(value);
    };
    add("DETAIL", PG_DIAG_MESSAGE_DETAIL);
    add("HINT", PG_DIAG_MESSAGE_HINT);
    add("QUERY", PG_DIAG_INTERNAL_QUERY);
    if (PQresultStatus(result) == PGRES_FATAL_ERROR)
        add("CONTEXT", PG_DIAG_CONTEXT);
    return text;
}

std::string trimmed(const std::string& message)
{
    return message.substr(0, message.find_last_not_of(" \n") + 1);
}
