#include "postgres/server_file.h"

#include <cctype>
#include <sstream>

#include "base/failure.h"
#include "base/files.h"

namespace
{

bool is_space(char c)
{
    return std::isspace(static_cast<unsigned char>(c)) != 0;
}

/* A comment begins at the line's start or after a space, but not between quotes: a password may
 * have a # in it. A backslash escapes the next character, as in libpq, so \' does not end the
 * quotes. */
std::string without_comment(const std::string& line)
{
    bool is_quoted = false;
    for (std::size_t i = 0; i < line.size(); i++)
        if (line[i] == '\\')
            i++;
        else if (line[i] == '\'')
            is_quoted = !is_quoted;
        else if (line[i] == '#' && !is_quoted && (i == 0 || is_space(line[i - 1])))
            return line.substr(0, i);
    return line;
}

} // namespace

std::map<int, std::string> read_server_file(const std::string& name)
{
    std::istringstream file(read_given_file(name));
    std::map<int, std::string> lines;
    int number = 0;
    for (std::string line; std::getline(file, line);) {
        number++;
        /* libpq would read the string up to there. UTF-16 has one in every character of ASCII. */
        if (line.find('\0') != std::string::npos)
            throw UsageError("file " + name + ", line " + std::to_string(number) +
                             " has a zero byte: it is no text, or UTF-16; save it as UTF-8");
        const std::string dsn = without_comment(line);
        const std::size_t begin = dsn.find_first_not_of(" \t\r");
        if (begin != std::string::npos)
            lines[number] = dsn.substr(begin, dsn.find_last_not_of(" \t\r") + 1 - begin);
    }
    if (lines.empty())
        throw UsageError("file " + name + " names no server: it has a connection string a line");
    return lines;
}
