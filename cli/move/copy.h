/* The steps before the switch, in this order. Clients write to the source meanwhile. Each step
 * skips its completed parts, because a move can be resumed. */

#pragma once

#include <cstdint>

#include "move/rights.h"
#include "move/session.h"
#include "routers/routing.h"

void prepare_source(Servers& servers, const Move& move, const Routing& routing, bool is_reversible);
/* The schema is there and closed afterwards, with the subscription that copies its rows. */
void prepare_target(Servers& servers, const Move& move, const Workers& workers);
/* index_jobs: how many indexes are built at the same time. */
void await_copy(Servers& servers, const Move& move, int index_jobs);
/* Late if the definition is being changed just now; MustStartAnew if it has changed. */
void finish_definition(Servers& servers, const Move& move, int index_jobs);
/* Returns when no more than so many bytes of WAL are left to be replicated, and the worker runs.
 * There is no deadline: clients write meanwhile, and Ctrl-C ends the wait. */
void await_lag(Servers& servers, const Move& move, std::int64_t max_lag);
