/* The verb move and its arguments. */

#pragma once

#include "routers/options.h"

/* An empty string was not given. */
struct MoveOptions : SwitchOptions {
    bool json = false;
    std::string schema; /* one shard; or --shards, or --plan */
    std::string shards;
    std::string plan;
    int jobs = 1;
    int index_jobs = 2;
    std::string from;
    std::string to;
    std::string source; /* the server of --from as that of --to reaches it */
    std::string target; /* the other way round */
    bool trusts_owners = false;
    bool is_dry_run = false;
    bool is_resumed = false;
    bool is_aborted = false;
    bool is_undone = false;
    bool drops_source = false;
    bool is_reversible = false;
    std::uint64_t verify_size = 1 << 30;
};

int move_shard(const MoveOptions& options);
