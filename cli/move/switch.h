/* The switch: the fence on the source, and the opening of the target. */

#pragma once

#include "cutover/cutover.h"
#include "move/session.h"

/* Returns when the target is open, and for how many milliseconds writes were blocked; an error if
 * it is not after several tries. The snapshot is another connection to the target: it has the rows
 * as they were when the target was opened. */
std::int64_t switch_over(Servers& servers, const Move& move, Connection& snapshot,
                         Cutover& cutover);
