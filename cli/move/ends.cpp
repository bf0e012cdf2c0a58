/* The other ends of a move: --abort before the switch, --drop-source behind it. */

#include "move/cleanup.h"
#include "move/command.h"
#include "move/dependents.h"
#include "move/fence.h"
#include "move/transaction.h"
#include "move/way_back.h"

/* Before the switch. The shard is where it was; if it has come from the target, that follows it on.
 */
int MoveCommand::abort()
{
    const Standing now = standing();
    if (!now.has_begun())
        throw Failure("there is no move of schema " + options_.schema + " to be aborted" +
                      (now.has_way_back() ? "\nHINT:  The shard is at " + target_.server() +
                                                ". --undo moves it back."
                       : now.has_moved() ? how_to_move_back()
                                         : ""));
    now.require_same_servers(session_.servers, move_);
    if (now.is_switched())
        throw Failure("the shard is open on " + target_.server() + ": --resume finishes the move" +
                      (now.source && now.source->is_reversible ? ", and --undo moves it back then"
                                                               : how_to_move_back()));
    remedy_ = command_with("--abort");
    if (now.source)
        lower_fence(source_, move_, limits_.deadline());
    const bool is_resumed = routers_.resume();
    routers_.discard_prepared();
    discard_way_back(target_, move_, limits_);
    if (now.is_undo())
        write_way_back(source_, move_, Step::prepared);
    else
        remove_copy(now);
    remedy_ = "RESUME in its console lets them go on";
    if (!is_resumed)
        throw Failure("the move is aborted, but not every PgBouncer could be resumed");
    return end("aborted");
}

void MoveCommand::remove_copy(const Standing& now)
{
    drop_subscription(target_, move_);
    if (now.target)
        target_.run(move_.sql("BEGIN; DROP SCHEMA @move@ CASCADE; DROP SCHEMA IF EXISTS ") +
                    move_.shard.quoted + " CASCADE; COMMIT");
    drop_slot_and_publication(source_, move_, limits_.deadline());
    drop_state(source_, move_, limits_);
}

int MoveCommand::drop_source()
{
    const Standing now = standing();
    if (now.has_begun())
        throw Failure("the move is not at its end\nHINT:  " +
                      command_with(now.is_being_undone() ? "--undo" : "--resume") + ".");
    if (!now.source && !now.target && is_there_already(now))
        return end("dropped");
    if (!now.source)
        throw Failure("schema " + move_.shard.schema + " of " + source_.server() +
                      " has not been moved");
    if (!has_shard(target_, move_.shard))
        throw Failure("schema " + move_.shard.schema + " of " + target_.server() +
                      " is not shard " + std::to_string(move_.shard.number));
    std::string dependents;
    for (const std::string& dependent : find_dependents(source_, move_.shard))
        dependents += "\n    " + dependent;
    if (!dependents.empty())
        throw Failure("objects of other schemas would be dropped, too:" + dependents);
    if (now.is_followed()) {
        drop_subscription(source_, move_);
        discard_way_back(target_, move_, limits_);
        drop_state(target_, move_, limits_);
    }
    lock_and_run(source_, limits_.deadline(), [&] {
        source_.run("DROP SCHEMA " + move_.shard.quoted + " CASCADE; DROP SCHEMA " + move_.name +
                    " CASCADE");
    });
    return end("dropped");
}
