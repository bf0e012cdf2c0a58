#include "postgres/error_text.h"

#include <algorithm>

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
