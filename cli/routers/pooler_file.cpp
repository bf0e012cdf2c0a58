#include "routers/pooler_file.h"

#include <functional>
#include <sstream>

#include "base/failure.h"
#include "base/match.h"
#include "base/quoting.h"

namespace
{

/* The name. */
const char* const kSection = R"(^[[:space:]]*\[(.*)\][[:space:]]*$)";
/* shard5 = host=... of the section [databases]: all up to the settings, the name, the settings, the
 * space after them. A line that is commented out begins with ; or #, so it has no alias. */
const char* const kDatabase = R"(^([[:space:]]*("[^"]*"|[^[:space:]=]+)[[:space:]]*=[[:space:]]*))"
                              R"((.*[^[:space:]])?([[:space:]]*)$)";
/* The first setting, its name, its value; '' is a quote between quotes. The rest of the line is no
 * part of it: a line of many settings would be read anew for each. */
const char* const kSetting = R"(^[[:space:]]*(([^[:space:]=]+)[[:space:]]*=[[:space:]]*)"
                             R"(('([^']|'')*'|[^'[:space:]][^[:space:]]*)?)([[:space:]]|$))";
/* The file. */
const char* const kInclude = R"(^[[:space:]]*%include[[:space:]]+(.*[^[:space:]])[[:space:]]*$)";

using Groups = std::vector<std::string>;

std::string unquoted(const std::string& value)
{
    if (value.empty() || value[0] != '\'')
        return value;
    std::string text;
    for (std::size_t at = 1; at + 1 < value.size(); at++) {
        text += value[at];
        at += value[at] == '\'' ? 1 : 0;
    }
    return text;
}

/* Returns the rest after the last setting. It is empty in a line that PgBouncer can read: with a
 * quote that has no end, or a word without =, PgBouncer refuses the line. */
std::string for_each_setting(std::string settings, const std::function<void(const Groups&)>& work)
{
    for (Groups found; !(found = match(settings, kSetting)).empty();) {
        work(found);
        settings.erase(0, found[0].size());
    }
    return settings.erase(0, settings.find_first_not_of(" \t"));
}

/* The defaults are PgBouncer's. */
AliasLine line_of(const std::string& settings, const std::string& alias, int number)
{
    std::map<std::string, std::string> values = {{"port", "5432"}, {"dbname", alias}};
    for_each_setting(settings,
                     [&](const Groups& setting) { values[setting[2]] = unquoted(setting[3]); });
    return {number,
            {values["host"], values["port"], values["dbname"]},
            values.count("connect_query") > 0};
}

/* The other settings keep their text, with their quotes, so no list of PgBouncer's settings is
 * needed. So does a rest that cannot be read: a part of it must not become a setting. */
std::string settings_with(const std::string& settings, const Address& place)
{
    std::string text = "host=" + pooler_value(place.host) + " port=" + pooler_value(place.port) +
                       " dbname=" + pooler_value(place.database);
    const std::string rest = for_each_setting(settings, [&](const Groups& setting) {
        if (setting[2] != "host" && setting[2] != "port" && setting[2] != "dbname")
            text += " " + setting[1];
    });
    return text + (rest.empty() ? "" : " " + rest);
}

/* The text with the lines of these aliases as edit() returns them, from alias, number and groups.
 */
std::string edited(const std::string& text, const Aliases& aliases,
                   const std::function<std::string(const std::string&, int, const Groups&)>& edit)
{
    std::istringstream input(text);
    std::string output;
    bool is_databases = false;
    int number = 0;
    /* The last line gets no newline if it had none: all other bytes stay as they were. */
    for (std::string line; std::getline(input, line); output += line + (input.eof() ? "" : "\n")) {
        number++;
        const Groups section = match(line, kSection);
        if (!section.empty())
            is_databases = section[1] == "databases";
        const Groups database = is_databases ? match(line, kDatabase) : Groups();
        if (database.empty())
            continue;
        const std::string& word = database[2];
        const std::string alias = word[0] == '"' ? word.substr(1, word.size() - 2) : word;
        if (aliases.count(alias) > 0)
            line = edit(alias, number, database);
    }
    return output;
}

} // namespace

std::string named(const Aliases& aliases)
{
    if (aliases.size() == 1)
        return "alias " + visible(*aliases.begin());
    std::string text =
        "aliases " + visible(*aliases.begin()) + ", " + visible(*std::next(aliases.begin()));
    if (aliases.size() > 2)
        text += " and " + std::to_string(aliases.size() - 2) + " more";
    return text;
}

std::map<std::string, std::vector<AliasLine>> lines_of(const std::string& text,
                                                       const Aliases& aliases)
{
    std::map<std::string, std::vector<AliasLine>> lines;
    edited(text, aliases, [&](const std::string& alias, int number, const Groups& line) {
        lines[alias].push_back(line_of(line[3], alias, number));
        return line[0];
    });
    return lines;
}

std::string with_place(const std::string& text, const Aliases& aliases, const Address& place)
{
    std::map<std::string, int> counts;
    std::string made =
        edited(text, aliases, [&](const std::string& alias, int /*number*/, const Groups& line) {
            counts[alias]++;
            return line[1] + settings_with(line[3], place) + line[4];
        });
    /* The obstacles were looked for in an earlier text. Somebody can have
     * changed the file since. */
    for (const std::string& alias : aliases)
        if (counts[alias] != 1)
            throw Failure("[databases] has " + std::to_string(counts[alias]) + " lines of alias " +
                          visible(alias) + ", not 1");
    return made;
}

std::vector<std::string> includes_of(const std::string& text)
{
    std::vector<std::string> files;
    std::istringstream input(text);
    for (std::string line; std::getline(input, line);)
        if (const Groups found = match(line, kInclude); !found.empty())
            files.push_back(found[1]);
    return files;
}
