#include "plan/weights.h"

#include <sstream>

#include "base/failure.h"
#include "base/files.h"
#include "base/match.h"
#include "postgres/error_text.h"

std::map<int, double> read_weights(const std::string& file)
{
    std::istringstream lines(read_given_file(file));
    std::map<int, double> weights;
    std::size_t number = 0;
    for (std::string line; std::getline(lines, line);) {
        const std::string place = file + ", line " + std::to_string(++number) + ": ";
        const std::string content = line.substr(0, line.find('#'));
        if (content.find_first_not_of(" \t\r") == std::string::npos)
            continue;
        /* Bounded numbers of digits, so that stoi() and stod() cannot fail. No sign, because a load
         * below 0 has no meaning. \r is of a file from Windows. */
        const auto parts = match(
            content, "^[ \t]*([0-9]{1,4})[ \t]*,[ \t]*([0-9]{1,15}([.][0-9]{1,15})?)[ \t\r]*$");
        if (parts.empty())
            /* A zero byte, as UTF-16 has it, would end the message. */
            throw UsageError(place + "\"" + trimmed(content.substr(0, content.find('\0'))) +
                             "\" is no shard and weight; a line looks like 5,120.5");
        /* The last of two weights would win silently, and the plan be wrong. */
        if (!weights.insert({std::stoi(parts[1]), std::stod(parts[2])}).second)
            throw UsageError(place + "shard " + parts[1] + " has a weight already");
    }
    return weights;
}
