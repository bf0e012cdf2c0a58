/* PgBouncer's configuration as text: the aliases of [databases], and the files that it includes. */

#pragma once

#include <map>
#include <set>
#include <string>
#include <vector>

using Aliases = std::set<std::string>;

/* "alias shard5"; of many the first two and their number. The set must not be empty. */
std::string named(const Aliases& aliases);

/* Where an alias leads. As text: two places can be one server by other names, so servers are asked
 * who they are (pooler_obstacles.cpp). */
struct Place {
    std::string host; /* empty: the folder of PgBouncer's own socket */
    std::string port;
    std::string database;

    std::string text() const { return host + ":" + port + "/" + database; }
    bool operator==(const Place& other) const { return text() == other.text(); }
};

struct AliasLine {
    int number; /* of the line, from 1 */
    Place place;
};

/* The lines of these aliases in the section [databases] of this text; none for an alias that it
 * does not have. */
std::map<std::string, std::vector<AliasLine>> lines_of(const std::string& text,
                                                       const Aliases& aliases);

/* The text with another place in the lines of the aliases; all other settings of a line stay. An
 * error if it has no line of an alias, or several. */
std::string with_place(const std::string& text, const Aliases& aliases, const Place& place);

/* The files behind %include, as they are written there. */
std::vector<std::string> includes_of(const std::string& text);
