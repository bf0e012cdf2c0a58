/* PgBouncer's configuration as text: the aliases of [databases], and the files that it includes. */

#pragma once

#include <string>
#include <vector>

/* Where an alias leads. */
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

/* The lines of the alias in the section [databases] of this text. */
std::vector<AliasLine> lines_of(const std::string& text, const std::string& alias);

/* The text with another place in the line of the alias; all other settings of the line stay. An
 * error if it has no such line, or several. */
std::string with_place(const std::string& text, const std::string& alias, const Place& place);

/* The files behind %include, as they are written there. */
std::vector<std::string> includes_of(const std::string& text);
