/* The other ends of a move: --abort before the cutover, --complete after it. */

#include "fleet/catalog.h"
#include "cutover/dependents.h"
#include "cutover/standby.h"
#include "move/command.h"
#include "postgres/identity.h"

/* Ends a move before the target is open. The shards are where they were. If an undo ends here, the
 * target of the move stays open, and the source continues to follow it. Clients come first: the
 * fence is lowered and they are let go before anything is removed. */
int MoveCommand::abort(const Standing& now, Act act)
{
    require_same_servers(now);
    /* The records were read under the locks that Session holds on both servers, so no other command
     * opens the target before the fence is lowered. */
    cutover_.remedy = command_with("--abort") + " goes on";
    const Watch on_source(source_, tell_of_standby(source_));
    const Watch on_target(target_, tell_of_standby(target_));
    Context context = this->context();
    run(context, act);
    cutover_.end_abort("the move");
    return end("aborted");
}

/* Drops the closed copy. It is on the target if the move was undone. The steps begin with the end
 * of reverse replication, if it stands: an undo that was killed before its fence leaves aliases
 * paused, and with --reversible a slot and a publication on the source. */
int MoveCommand::complete(const Standing& now, Act act)
{
    const bool is_on_target = !now.source();
    if (is_on_target && !is_address_of(now.target()->other, source_))
        refuse(now, program::Refusal::not_moved);
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
    Context context = this->context();
    run(context, act);
    return end("dropped");
}
