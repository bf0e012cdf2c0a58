/* Whether clients can write where shards are to be opened. It is asked before a move or a split
 * begins, and before each cutover, because anything can have changed since. */

#pragma once

#include <string>

#include "base/shards.h"
#include "postgres/obstacles.h"

/* The clock of the server that is to be opened, against that of home and the positions of its
 * sequences, from which the other server continues. The settings are those of this role. title: of
 * home, for a message: "the source". */
Obstacles find_slow_clock(Connection& home, Connection& opened, const Shards& shards,
                          const std::string& title);

/* default_transaction_read_only of a session that does not set it. */
struct ReadOnly {
    std::string value;
    bool is_of_role; /* by ALTER ROLE */
    std::string origin;
    std::string remedy; /* the statement that turns it off */
};
ReadOnly read_only_of(Connection& server);

/* Clients could not write on the opened server, and can on home. A setting of this role is none of
 * clients. */
Obstacles find_read_only(Connection& home, Connection& opened);
