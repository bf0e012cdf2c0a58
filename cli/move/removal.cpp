/* The steps that remove the objects of a move: at its end, of --abort and of --complete. In these
 * two the record of the source is removed or reset last: it alone tells of the move then, so a
 * command that was killed in between can be given again. */

#include "cutover/dependents.h"
#include "cutover/unwritten.h"
#include "cutover/waiting.h"
#include "move/rehearsal.h"
#include "move/replication.h"
#include "move/run.h"
#include "replication/keys.h"

namespace
{

Clock::time_point deadline_of(const Context& context)
{
    return context.cutover.limits.deadline();
}

/* One transaction. A schema without a record is not of this move, and stays, so no command may be
 * killed between the two. And the schema of the move has the function of the triggers, which
 * CASCADE drops with it: if it went before the rows, clients could write to the old rows again. */
void drop_rows(Context& context, Connection& connection)
{
    lock_and_run_naming(connection, deadline_of(context),
                        [&] { drop_shards(connection, context.move.shards, context.move.name); });
}

void drop_closed_rows(Context& context, Connection& closed, const MoveState& record)
{
    /* Reverse replication has written to the others. */
    if (record.step == Step::moved)
        require_unwritten(closed, context.move.fence(), true, record.other.text());
    drop_rows(context, closed);
}

} // namespace

void steps::drop_old(Context& context)
{
    drop_closed_rows(context, context.servers.target, context.now->required_target());
}

/* At the end of a move it is the first, because its worker holds the slot; and the target must
 * receive nothing from the source any more when reverse replication begins: rows would go in a
 * circle. --abort drops it before the copy: DROP TABLE fails while rows are copied to the table
 * (RemoveSubscriptionRel()). */
void steps::drop_subscription(Context& context)
{
    Connection& target = context.servers.target;
    ::drop_subscription(target, context.move, deadline_of(context));
    if (context.wish.verb != Verb::abort)
        end_check_of_replicated_rows(target, context.move.shards, deadline_of(context));
}

void steps::drop_slot(Context& context)
{
    drop_slot_of(context.servers.source, context.move, deadline_of(context));
}

void steps::drop_publication(Context& context)
{
    ::drop_publication(context.servers.source, context.move);
}

void steps::discard_slot(Context& context)
{
    drop_slot_of(context.servers.target, opposite(context.move), deadline_of(context));
}

void steps::discard_publication(Context& context)
{
    ::drop_publication(context.servers.target, opposite(context.move));
}

/* Before the record of the target. If the command is killed in between, the source is at moved and
 * the target has a record: --resume goes on. The other way round, a fenced source and no record on
 * the target would look as if the target's database was lost, and --resume would refuse to go on.
 */
void steps::write_moved(Context& context)
{
    ::write_moved(context.servers.source, context.move, context.was_compared);
}

void steps::drop_target_record(Context& context)
{
    drop_state(context.servers.target, context.move, context.cutover.limits);
}

/* --undo --reversible has set is_reversible. Reverse replication stands again without it. */
void steps::reset_record(Context& context)
{
    write_reverse(context.servers.source, context.move, Step::prepared);
}

/* The first removal of --abort, so a dependent object is told before anything is removed. */
void steps::remove_rehearsal(Context& context)
{
    if (context.now->target())
        require_none_dropped(context.servers.target, context.move.shards);
    ::remove_rehearsal(context.servers, context.move, deadline_of(context));
}

void steps::drop_copy(Context& context)
{
    drop_rows(context, context.servers.target);
}

void steps::drop_source_record(Context& context)
{
    drop_state(context.servers.source, context.move, context.cutover.limits);
}

void steps::drop_follower(Context& context)
{
    ::drop_subscription(context.servers.source, context.move, deadline_of(context));
}

/* It is on the target if the move was undone. */
void steps::drop_closed(Context& context)
{
    const Standing& now = *context.now;
    if (now.source())
        drop_closed_rows(context, context.servers.source, *now.source());
    else
        drop_closed_rows(context, context.servers.target, now.required_target());
}
