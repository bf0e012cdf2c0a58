#include "base/match.h"

#include <map>
#include <memory>
#include <stdexcept>

#include <regex.h>

namespace
{

using Compiled = std::unique_ptr<regex_t, void (*)(regex_t*)>;

Compiled compile(const char* pattern)
{
    auto made = std::make_unique<regex_t>();
    if (regcomp(made.get(), pattern, REG_EXTENDED) != 0)
        throw std::logic_error(std::string("wrong pattern ") + pattern);
    return {made.release(), [](regex_t* regex) {
                regfree(regex);
                delete regex;
            }};
}

/* A file of thousands of aliases is read line by line. So a pattern is compiled once, in each
 * thread: several servers are asked at the same time. */
const regex_t& compiled_once(const char* pattern)
{
    thread_local std::map<std::string, Compiled> known;
    auto found = known.find(pattern);
    if (found == known.end())
        found = known.emplace(pattern, compile(pattern)).first;
    return *found->second;
}

} // namespace

std::vector<std::string> match(const std::string& text, const char* pattern)
{
    const regex_t& compiled = compiled_once(pattern);
    std::vector<regmatch_t> places(compiled.re_nsub + 1);
    /* A zero byte is the end of the text for regexec(), so the rest would not be read. */
    const bool is_found = text.find('\0') == std::string::npos &&
                          regexec(&compiled, text.c_str(), places.size(), places.data(), 0) == 0;
    std::vector<std::string> groups;
    if (is_found)
        for (const auto& [begin, end] : places)
            groups.emplace_back(begin < 0 ? "" : text.substr(begin, end - begin));
    return groups;
}
