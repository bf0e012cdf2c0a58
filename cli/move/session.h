/* Shared by the steps of a move: its names and its two servers. */

#pragma once

#include <string>
#include <vector>

#include "base/shards.h"
#include "fleet/known.h"
#include "cutover/fence.h"
#include "postgres/connection.h"

/* The set of shards that moves, and the names of the objects of its move on both servers. */
struct Move {
    Shards shards;    /* by number, at least one */
    std::string name; /* snowflake_move_5: schemas, publication and subscription */
    /* The slot on the source; and on the target, for reverse replication. Names of slots are of a
     * whole cluster, and both servers can be databases of one. */
    std::string slot;
    std::string back_slot;
    bool has_ids = true; /* else it is a rehearsal, whose tables have no shard's number */

    std::string title() const { return title_of(shards); }
    std::string schemas() const { return schemas_of(shards); }
    bool is_one() const { return shards.size() == 1; }
    /* "insta5", "insta6", as SQL writes them. */
    std::string quoted() const;
    Fence fence() const { return {name, "snowflake_move"}; }
    /* Puts the name of the move in the place of @move@. */
    std::string sql(std::string text) const;
};

/* The move in the other direction: the same names, and the slots exchanged. */
Move opposite(const Move& move);

struct Servers {
    Servers(const std::string& from, const std::string& to);

    Connection source;
    Connection target;
};

/* Connects to both servers, and locks the shards on them, so that no other command moves one of
 * them. A Failure if these schemas are a part of a set that moves, or of several. */
struct Session {
    Session(const std::string& from, const std::string& to,
            const std::vector<std::string>& schemas);

    Servers servers;
    Known known; /* of the source, read under the locks */
    const Move move;
};
