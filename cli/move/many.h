/* snowflake-shard move --shards, --plan: a list of moves, of which each server makes one at a time.
 */

#pragma once

#include "move/verb.h"

/* Prints the obstacles of all moves, or a line for each move when all have ended. Returns 3 if a
 * move failed or was not begun, else 1 if there are obstacles, rows differ or a way back was not
 * made, else 0. UsageError and Failure only before the first move. */
int move_many(const MoveOptions& options);
