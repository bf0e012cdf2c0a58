#include "move/run.h"

#include <stdexcept>

namespace program
{

namespace
{

struct Function {
    Step step;
    void (*function)(Context& context);
};

constexpr Function kFunctions[] = {
    {Step::erase_marker, steps::erase_marker},
    {Step::release_sequences, steps::release_sequences},
    {Step::lift, steps::lift},
    {Step::resume_clients, steps::resume_clients},
    {Step::drop_subscription, steps::drop_subscription},
    {Step::drop_slot, steps::drop_slot},
    {Step::drop_publication, steps::drop_publication},
    {Step::drop_left_back, steps::drop_left_back},
    {Step::subscribe_back, steps::subscribe_back},
    {Step::advance_origin, steps::advance_origin},
    {Step::enable_back, steps::enable_back},
    {Step::finish_reverse, steps::finish_reverse},
    {Step::discard_slot, steps::discard_slot},
    {Step::discard_publication, steps::discard_publication},
    {Step::write_moved, steps::write_moved},
    {Step::drop_target_record, steps::drop_target_record},
    {Step::reset_record, steps::reset_record},
    {Step::remove_rehearsal, steps::remove_rehearsal},
    {Step::drop_copy, steps::drop_copy},
    {Step::drop_source_record, steps::drop_source_record},
    {Step::drop_follower, steps::drop_follower},
    {Step::drop_closed, steps::drop_closed},
};

void take(Context& context, Step step)
{
    for (const Function& row : kFunctions)
        if (row.step == step)
            return row.function(context);
    throw std::logic_error(std::string("no function does this step: ") + row_of(step).text);
}

} // namespace

} // namespace program

void run_from(Context& context, program::Step first)
{
    for (program::Step step = first;
         step != program::Step::done && step != program::Step::failed;) {
        program::take(context, step);
        context.now.emplace(context.servers, context.move);
        step = program::next(*context.now, context.wish, step);
    }
}

void run(Context& context, Act act)
{
    context.now.emplace(context.servers, context.move);
    run_from(context, program::first(act, *context.now, context.wish));
}

void run_after(Context& context, program::Step last)
{
    context.now.emplace(context.servers, context.move);
    run_from(context, program::next(*context.now, context.wish, last));
}
