#include "postgres/error_text.h"

#include <algorithm>
#include <set>

std::string without_text(std::string error, const std::string& begin)
{
    for (const char* mark : {"\nQUERY:  ", "\nCONTEXT:  SQL statement \"", "\nSQL statement \""}) {
        const std::size_t at = error.find(mark + begin);
        if (at == std::string::npos)
            continue;
        /* The library's own line of the CONTEXT is kept: see tell_role(). */
        const std::size_t end =
            std::min({error.find("\nCONTEXT:  ", at + 1), error.find("\nSERVER:  ", at),
                      error.find("\nThe SQL works with the rights of role ", at)});
        error.erase(at, end == std::string::npos ? end : end - at);
    }
    return error;
}

std::string with_lines_indented(const std::string& text)
{
    const std::set<std::string> kBegins = {" ",
                                           "LINE",
                                           "DETAIL",
                                           "HINT",
                                           "CONTEXT",
                                           "QUERY",
                                           "SERVER",
                                           "LOCATION",
                                           "PL/pgSQL",
                                           "SQL ",
                                           "The SQL works with "};
    std::string indented = text.substr(0, text.find('\n'));
    for (std::size_t at = indented.size(); at < text.size();) {
        const std::size_t end = std::min(text.find('\n', at + 1), text.size());
        const std::string line = text.substr(at + 1, end - at - 1);
        const bool is_known =
            std::any_of(kBegins.begin(), kBegins.end(),
                        [&](const std::string& begin) { return line.rfind(begin, 0) == 0; });
        indented += (is_known || line.empty() ? "\n" : "\n    ") + line;
        at = end;
    }
    return indented;
}

std::string trimmed(const std::string& message)
{
    return message.substr(0, message.find_last_not_of(" \n") + 1);
}
