/* The other ends of a move: --abort before the cutover, --complete after it. */

#include "fleet/catalog.h"
#include "cutover/dependents.h"
#include "cutover/standby.h"
#include "cutover/unwritten.h"
#include "cutover/waiting.h"
#include "move/command.h"
#include "move/fence.h"
#include "move/replication.h"
#include "move/reverse.h"
#include "postgres/identity.h"

/* Ends a move before the target is open. The shards are where they were. If an undo ends here, the
 * target of the move stays open, and the source continues to follow it. Clients come first: the
 * fence is lowered and they are let go before anything is removed. The record on the source is
 * removed or reset last, so an --abort that was killed can be given again. */
int MoveCommand::abort(const Standing& now)
{
    require_same_servers(now);
    /* The records were read under the locks that Session holds on both servers, so no other command
     * opens the target before the fence is lowered. */
    cutover_.remedy = command_with("--abort") + " goes on";
    const Watch on_source(source_, tell_of_standby(source_));
    const Watch on_target(target_, tell_of_standby(target_));
    if (now.source)
        lower_fence(source_, move_, limits_.deadline());
    cutover_.let_go();
    discard_reverse(target_, move_, limits_);
    /* --undo --reversible has set is_reversible. Reverse replication stands again without it. */
    if (now.is_undo())
        write_reverse(source_, move_, Step::prepared);
    else
        remove_copy(now);
    cutover_.end_abort("the move");
    return end("aborted");
}

void MoveCommand::remove_copy(const Standing& now)
{
    if (now.target)
        require_none_dropped(target_, move_.shards);
    /* The subscription first: DROP TABLE fails while rows are copied to the table
     * (RemoveSubscriptionRel()). */
    remove_rehearsal(session_.servers, move_, limits_.deadline());
    drop_subscription(target_, move_, limits_.deadline());
    /* Copy::make_tables() commits the record together with the schema of the shard. Without
     * a record, a schema of that name is not of this move, and stays. So both are dropped
     * in one transaction, too. */
    if (now.target)
        lock_and_run_naming(target_, limits_.deadline(),
                            [&] { drop_shards(target_, move_.shards, move_.name); });
    drop_slot_and_publication(source_, move_, limits_.deadline());
    drop_state(source_, move_, limits_);
}

/* One transaction: the schema of the move has the function of the triggers, and CASCADE drops these
 * with it. If it went before the rows, clients could write to the old rows again. */
void MoveCommand::drop_closed(Connection& closed)
{
    /* Reverse replication has written to the others. */
    if (const MoveState state = require_state(closed, move_); state.step == Step::moved)
        require_unwritten(closed, move_.fence(), true, state.other.text());
    lock_and_run_naming(closed, limits_.deadline(),
                        [&] { drop_shards(closed, move_.shards, move_.name); });
}

/* Drops the closed copy. It is on the target if the move was undone. */
int MoveCommand::complete(const Standing& now)
{
    const bool is_on_target = !now.source;
    if (is_on_target && !is_address_of(now.target->other, source_))
        refuse(now);
    const Watch on_source(source_, tell_of_standby(source_));
    const Watch on_target(target_, tell_of_standby(target_));
    Connection& closed = is_on_target ? target_ : source_;
    Connection& open = is_on_target ? source_ : target_;
    /* A schema can have been dropped or renamed on the target since the move. Then the rows of the
     * source are the only ones. */
    if (const Shards missing = find_missing(read_shards(open), move_.shards); !missing.empty())
        throw Failure("schema " + visible(missing[0].schema) + " of " + open.server() +
                      " is not shard " + std::to_string(missing[0].number));
    /* Before reverse replication ends: until then --undo is possible. */
    require_none_dropped(closed, move_.shards);
    /* The record of the source is dropped last. It alone tells that the source follows, so a
     * command that was killed in between goes on, also when the part of the target is gone. An
     * undo that was killed before its fence leaves aliases paused, and with --reversible a slot and
     * a publication on the source. */
    if (row_of(now.phase()).motion == Motion::reverse) {
        routers_.resume();
        drop_subscription(source_, move_, limits_.deadline());
        discard_reverse(target_, move_, limits_);
        drop_slot_and_publication(source_, move_, limits_.deadline());
        drop_state(target_, move_, limits_);
    }
    drop_closed(closed);
    return end("dropped");
}
