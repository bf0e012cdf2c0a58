/* The last step of clone: shards from the dump of a copy of the template. */

#pragma once

#include <string>
#include <vector>

#include "base/shard_states.h"
#include "postgres/restore.h"
#include "postgres/servers.h"

/* The copy that a connection makes its clones from; its schema's name is in the dump. */
struct Recipe {
    std::string schema; /* that the dump makes */
    std::string dump;
    /* With marks in the place of the shard's name and number: see renumbering_of(). */
    std::string renumbering;
    std::string names; /* see Copy::names_of_functions() */
    AgreedRights agreed;
};

/* Makes those that are "not done", over a connection for each recipe, until one fails. Each is a
 * schema with the copy's name, which gets its own number and is renamed in the same transaction.
 * Failure if a connection cannot be made at the beginning. */
void make_clones(const Server& home, const std::vector<Recipe>& recipes,
                 const std::string& sole_owner, std::vector<ShardState>& targets);
