#include "match.h"

#include <stdexcept>

#include <regex.h>

std::vector<std::string> match(const std::string& text, const char* pattern)
{
    regex_t compiled;
    if (regcomp(&compiled, pattern, REG_EXTENDED) != 0)
        throw std::logic_error(std::string("wrong pattern ") + pattern);
    std::vector<regmatch_t> places(compiled.re_nsub + 1);
    const bool is_found = regexec(&compiled, text.c_str(), places.size(), places.data(), 0) == 0;
    regfree(&compiled);
    std::vector<std::string> groups;
    if (is_found)
        for (const auto& [begin, end] : places)
            groups.emplace_back(begin < 0 ? "" : text.substr(begin, end - begin));
    return groups;
}
