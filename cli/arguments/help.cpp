#include "arguments/help.h"

#include <sstream>

namespace
{

constexpr std::size_t kWidth = 100;

/* The rest of a description stands in its column. */
std::string wrap(std::string line, std::size_t column)
{
    const std::string indent(line[0] == ' ' ? column : 0, ' ');
    std::string wrapped;
    while (line.size() > kWidth) {
        const std::size_t space = line.rfind(' ', kWidth);
        if (space == std::string::npos || space <= indent.size())
            break;
        wrapped += line.substr(0, space) + "\n";
        line = indent + line.substr(space + 1);
    }
    return wrapped + line + "\n";
}

} // namespace

std::string Help::make_help(const CLI::App* app, std::string name, CLI::AppFormatMode mode) const
{
    std::istringstream lines(CLI::Formatter::make_help(app, std::move(name), mode));
    std::string wrapped;
    for (std::string line; std::getline(lines, line);)
        wrapped += wrap(line, get_column_width());
    return wrapped;
}

/* The first sentence: the help of the verb has the others. */
std::string Help::make_subcommand(const CLI::App* verb) const
{
    const std::string text = CLI::Formatter::make_subcommand(verb);
    const std::size_t end = text.find(". ");
    return end == std::string::npos ? text : text.substr(0, end + 1) + "\n";
}
