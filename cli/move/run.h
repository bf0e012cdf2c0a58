/* The steps of a move as program/next.h orders them: the loop that does them, and a function for
 * each. */

#pragma once

#include <optional>

#include "cutover/cutover.h"
#include "move/session.h"
#include "move/state.h"
#include "program/next.h"

/* One command on shards that it has locked, as its steps need it. */
struct Context {
    Servers& servers;
    const Move& move;
    Cutover& cutover;
    program::Wish wish;
    /* The steps that lower the fence come first, and have this one together. */
    const Clock::time_point deadline = cutover.limits.deadline();
    std::optional<Standing> now = {}; /* made anew before each step */
    /* The end of a move needs these. */
    std::string target_dsn = {}; /* for the source */
    bool was_compared = false;   /* its rows are equal */
    std::string problem = {};    /* why the source cannot follow any more */
};

/* Does the steps of the act, from the first one to the end. */
void run(Context& context, Act act);
/* From this step to the end, and the steps behind it. */
void run_from(Context& context, program::Step first);
void run_after(Context& context, program::Step last);

/* Opens the source again, of a cutover that is given up, and lets clients go. The target must not
 * be open, and be locked; it is not asked. An error says that the fence still stands. */
void open_again(Servers& servers, const Move& move, Cutover& cutover);

/* A function for each step, by its name. A step passes over what is done already, because a command
 * can be killed in it. */
namespace steps
{

/* lowering.cpp */
void erase_marker(Context& context);
void release_sequences(Context& context);
void lift(Context& context);
void resume_clients(Context& context);

/* removal.cpp */
void drop_old(Context& context);
void drop_subscription(Context& context);
void drop_slot(Context& context);
void drop_publication(Context& context);
void discard_slot(Context& context);
void discard_publication(Context& context);
void write_moved(Context& context);
void drop_target_record(Context& context);
void reset_record(Context& context);
void remove_rehearsal(Context& context);
void drop_copy(Context& context);
void drop_source_record(Context& context);
void drop_follower(Context& context);
void drop_closed(Context& context);

/* reverse.cpp */
void drop_left_back(Context& context);
void subscribe_back(Context& context);
void advance_origin(Context& context);
void enable_back(Context& context);
void finish_reverse(Context& context);

} // namespace steps
