/* PgBouncer's configuration as text: the aliases of [databases], and the files that it includes. */

#pragma once

#include <map>
#include <set>
#include <string>
#include <vector>

#include "base/address.h"

using Aliases = std::set<std::string>;

/* "alias shard5"; of many the first two and their number. The set must not be empty. */
std::string named(const Aliases& aliases);

/* The host of a place is empty if the line has none: the folder of PgBouncer's own socket. */
struct AliasLine {
    int number; /* of the line, from 1 */
    Address place;
    bool has_query; /* connect_query */
};

/* The lines of these aliases in the section [databases] of this text; none for an alias that it
 * does not have. */
std::map<std::string, std::vector<AliasLine>> lines_of(const std::string& text,
                                                       const Aliases& aliases);

/* The text with another place in the lines of the aliases; all other settings of a line stay. An
 * error if it has no line of an alias, or several. */
std::string with_place(const std::string& text, const Aliases& aliases, const Address& place);

/* The files of %include, as they are written there. */
std::vector<std::string> includes_of(const std::string& text);
