/* The last step of clone: shards from the dump of a copy of the template. */

#pragma once

#include <string>
#include <vector>

#include "base/shard_states.h"
#include "postgres/servers.h"

/* The copy that a connection makes its clones from. */
struct Recipe {
    std::string schema;     /* its name is in the definition */
    std::string definition; /* for make_definition() */
    /* With marks in the place of the shard's name and number: see renumbering_of(). */
    std::string renumbering;
    std::string names; /* see Copy::names_of_functions() */
};

/* Makes those that are "not done", in a session of the owner for each recipe, until one fails. Each
 * is a schema with the copy's name, which gets its own number and is renamed in the same
 * transaction. Failure if a session cannot be made at the beginning. */
void make_clones(const Server& home, const std::vector<Recipe>& recipes, const std::string& owner,
                 std::vector<ShardState>& targets);
