/* Rights that the role of a move lacks on the subscribing server. */

#pragma once

#include "move/obstacles.h"

/* The roles that own a shard and its objects, and one of the objects of each, as arrays of SQL. */
struct Owners {
    std::string names;
    std::string objects;
};
Owners read_owners(Connection& home, const Shard& shard);

/* Each right that is missing, with the statement that grants it; nothing for a superuser. home:
 * where the shard is; dsn: the publisher as the subscriber's server reaches it. */
std::vector<Obstacle> find_missing_rights(Connection& subscriber, Connection& home,
                                          const Move& move, const std::string& dsn);
