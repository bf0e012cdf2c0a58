/* The order of the steps: which one follows another, by the state of both servers. test/model/move
 * searches all their interleavings with faults. move/run.cpp does those of --abort and --complete,
 * and those that lower a fence; move/forward.cpp has the others in its own order, which test/gaps
 * compares with this one. No server is asked here. */

#pragma once

#include "fleet/phase.h"
#include "program/guards.h"
#include "program/step.h"
#include "program/view.h"
#include "program/wish.h"

namespace program
{

/* The first step of an act. */
Step first(Act act, const View& view, const Wish& wish, const Guards& guards = {});
/* The first step by which clients can write to the source again. */
Step first_of_lowering(const View& view, const Guards& guards = {});
/* The step after the last one, which is done. Step::done and Step::failed are the ends. */
Step next(const View& view, const Wish& wish, Step last, const Guards& guards = {});

} // namespace program
