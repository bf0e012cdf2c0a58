/* Shared by the steps of a move: its names and its two servers. */

#pragma once

#include <string>
#include <vector>

#include "base/shards.h"
#include "postgres/connection.h"

/* The moved shard, and the names of the objects of its move on both servers. */
struct Move {
    Shard shard;
    std::string name; /* snowflake_move_5: schemas, publication and subscription */
    /* On the source; and on the target, for reverse replication. Names of slots are of a whole
     * cluster, and both servers can be databases of one. */
    std::string slot;
    std::string back_slot;

    /* SHARD=5, SCHEMA=insta5 */
    std::vector<std::string> variables() const
    {
        return {"SHARD=" + std::to_string(shard.number), "SCHEMA=" + shard.schema};
    }
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

/* Connects to both servers, and locks the shard on them, so that no other command moves it. */
struct Session {
    Session(const std::string& from, const std::string& to, const std::string& schema);

    Servers servers;
    const Move move;
};
