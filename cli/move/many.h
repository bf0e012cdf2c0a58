/* snowflake-shard move --shards, --plan: a list of moves, of which each server makes one at a time.
 */

#pragma once

#include "verbs.h"

int move_many(const Options& options);
