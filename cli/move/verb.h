/* The verb move and its arguments. */

#pragma once

#include "fleet/phase.h"
#include "routers/routing.h"

/* An empty string was not given. */
struct MoveOptions : CutoverOptions {
    bool json = false;
    std::string schema; /* one shard; or --shards, or --plan */
    std::string shards;
    std::string plan;
    int together = 50;                        /* shards of a set at most */
    std::uint64_t together_size = 50LL << 30; /* bytes of a set, if it has several shards */
    int jobs = 1;                             /* sets at a time, of different databases */
    int copy_jobs = 2;
    int index_jobs = 2;
    std::string from;
    std::string to;
    std::string source; /* the server of --from as that of --to reaches it */
    std::string target; /* the other way round */
    Verb verb = Verb::move;
    bool is_dry_run = false;   /* of Verb::move */
    bool is_rehearsed = false; /* of Verb::hold */
    bool is_reversible = false;
    std::uint64_t verify_size = 1 << 30;
};

int move_shard(const MoveOptions& options);

/* --shards, --plan: a list of moves. Prints the obstacles of all moves, or a line for each move
 * when all have ended. Returns 3 if a move failed or was not begun, else 1 if there are obstacles,
 * or a move has ended with something left to do, else 0. UsageError and Failure only before the
 * first move. */
int move_many(const MoveOptions& options);
