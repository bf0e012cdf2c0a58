/* The arguments of all verbs. */

#pragma once

#include "arguments/command_line.h"
#include "arguments/global.h"
#include "arguments/moves.h"
#include "arguments/shards.h"

/* In the order of the help. */
struct Arguments {
    CommandLine line;
    ShardArguments shards{line};
    MoveArguments moves{line};
    GlobalArguments global{line};
};
