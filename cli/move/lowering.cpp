/* The steps by which clients can write to the source again: the fence is lowered, and they are let
 * go. --abort and a cutover that is given up begin with them.
 *
 * setval() in lift() is not rolled back. So the marker is erased first: a command that goes on from
 * there closes all sequences again, and sends a new one. The triggers refuse rows until the last
 * commit, so a failure in between is harmless. */

#include "cutover/sequences.h"
#include "cutover/waiting.h"
#include "move/run.h"

namespace
{

/* A source that hangs is given up at the deadline, so that the error below tells the user of the
 * fence. */
void lower(Context& context, const std::function<void()>& work)
{
    Connection& source = context.servers.source;
    const Watch watch(source, late_at(source, context.deadline));
    try {
        work();
    } catch (const Failure& error) {
        throw Failure("the source may still be fenced, and closed to every write, until --resume "
                      "or --abort: " +
                      std::string(error.what()));
    }
}

} // namespace

void steps::erase_marker(Context& context)
{
    Connection& source = context.servers.source;
    lower(context, [&] {
        lock_and_run(source, context.deadline,
                     [&] { write_step(source, context.move, Step::fenced); });
    });
}

void steps::release_sequences(Context& context)
{
    lower(context, [&] {
        ::release_sequences(context.servers.source, context.move.fence(), context.deadline);
    });
}

void steps::lift(Context& context)
{
    Connection& source = context.servers.source;
    lower(context, [&] {
        lock_and_run(source, context.deadline, [&] {
            source.query(context.move.sql("SELECT @move@.lift()"));
            write_step(source, context.move, Step::prepared);
        });
    });
}

/* A cutover that is tried again needs the files of PgBouncers that were prepared for it. */
void steps::resume_clients(Context& context)
{
    if (context.wish.verb == Verb::abort)
        context.cutover.let_go();
    else
        context.cutover.routers.resume();
}

void open_again(Servers& servers, const Move& move, Cutover& cutover)
{
    Context context = {servers, move, cutover, {Verb::move, false, program::GivingUp::to_end}};
    const Standing& now = context.now.emplace(servers, move);
    program::Step first = {};
    lower(context, [&] {
        now.required_source();
        first = program::first_of_lowering(now);
    });
    run_from(context, first);
}
