/* The verb of a command, and those of its options on which the order of the steps depends. */

#pragma once

#include <cstdint>

#include "fleet/phase.h"

namespace program
{

/* A cutover is given up: the fence is lowered, and then the cutover is tried again, or the command
 * ends. */
enum class GivingUp : std::uint8_t { no, to_try_again, to_end };

struct Wish {
    Verb verb;
    bool is_reversible = false;
    GivingUp giving_up = GivingUp::no;
    bool gives_up_reverse = false; /* the source cannot follow any more */
};

} // namespace program
