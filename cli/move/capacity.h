/* The needs of moves on their servers: of the max_... settings, and whether so many are free, and
 * space. The databases of a cluster share its settings. */

#pragma once

#include <map>
#include <mutex>
#include <set>
#include <string>

#include "move/session.h"
#include "postgres/obstacles.h"

class Capacity
{
public:
    /* The copy and the stream of a move, until its end. jobs: connections that copy rows or build
     * indexes at the same time. The command has no session of an owner on the servers yet. */
    void add_move(Servers& servers, int jobs);
    /* Reverse replication until --complete, so that of several sets of a list adds up. The slot may
     * have been made already. */
    void add_reverse(Servers& servers, bool has_slot);
    /* The rows of shards, which come to the target. */
    void add_rows(Servers& servers, const Shards& shards);

    /* moves: how many sets move at the same time. A database is in one of them. */
    Obstacles find_too_few(int moves);
    /* Prints for --dry-run how many obstacles there are, and the space that each target needs. */
    void tell(const Obstacles& obstacles);

private:
    struct Side {
        std::set<std::string> databases; /* of moves */
        std::size_t reverse = 0;
    };
    struct Cluster {
        std::string dsn;  /* of the first database, by the text of the string */
        std::string seen; /* when the command looked first */
        Side publishing;
        Side subscribing;
    };
    struct Space {
        std::string dsn;
        std::size_t shards = 0;
        std::int64_t bytes = 0;
    };

    Cluster& cluster_of(Connection& connection);

    std::mutex mutex_;
    int jobs_ = 0;
    std::map<std::string, Cluster> clusters_;
    std::map<std::string, Space> spaces_; /* of each target database */
};
