#include "base/suggestion.h"

#include <algorithm>
#include <cctype>
#include <numeric>

#include "base/quoting.h"

namespace
{

/* How many characters are to be inserted, removed or replaced (Levenshtein). */
std::size_t distance(const std::string& from, const std::string& to)
{
    std::vector<std::size_t> row(to.size() + 1);
    std::iota(row.begin(), row.end(), 0);
    for (const char c : from) {
        std::size_t diagonal = row[0]++;
        for (std::size_t j = 0; j < to.size(); j++) {
            const std::size_t replaced = diagonal + (c == to[j] ? 0 : 1);
            diagonal = row[j + 1];
            row[j + 1] = std::min({replaced, diagonal + 1, row[j] + 1});
        }
    }
    return row.back();
}

std::string digits_of(std::string text)
{
    text.erase(std::remove_if(text.begin(), text.end(),
                              [](unsigned char c) { return std::isdigit(c) == 0; }),
               text.end());
    return text;
}

} // namespace

std::string suggestion(const std::string& word, const std::vector<std::string>& words)
{
    /* A third of the characters: with more, a short word resembles every other one. */
    std::size_t least = (word.size() + 1) / 3 + 1;
    std::string nearest;
    for (const std::string& candidate : words)
        if (const std::size_t found = distance(word, candidate); found < least) {
            least = found;
            nearest = candidate;
        }
    return nearest.empty() ? "" : ", did you mean " + visible(nearest) + "?";
}

std::string schema_suggestion(const std::string& schema, const std::vector<std::string>& schemas)
{
    std::vector<std::string> same;
    for (const std::string& candidate : schemas)
        if (digits_of(candidate) == digits_of(schema))
            same.push_back(candidate);
    return suggestion(schema, same);
}
