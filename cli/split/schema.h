/* The schema snowflake_split: the record of a split, and the functions that close and open shards
 * and sequences. */

#pragma once

#include <string>
#include <vector>

#include "fleet/records.h"

/* Makes it, in a transaction of the caller. new_server: the address of the standby, with which
 * later commands compare theirs. An error if a schema of that name is there, of any owner. */
void make_split(Connection& old, const Address& new_server, const std::vector<SplitShard>& shards);

/* On the server that was promoted, behind the treatment of its sequences, in a transaction of the
 * caller: opens the shards that have left, and closes the others. */
void open_sides(Connection& standby);
