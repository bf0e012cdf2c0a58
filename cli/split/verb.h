/* The verb split and its arguments. */

#pragma once

#include "routers/routing.h"

/* An empty string was not given. */
struct SplitOptions : CutoverOptions {
    bool json = false;
    std::string from;
    std::string standby;
    std::string shards;
    bool is_dry_run = false;
    bool is_resumed = false;
    bool is_aborted = false;
    bool is_completed = false;
};

int split_server(const SplitOptions& options);
