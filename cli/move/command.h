/* The command move on one shard. Its parts are in move.cpp (reads the command
 * line), forward.cpp (a move, a resumed move and an undo) and ends.cpp (abort, drop-source). */

#pragma once

#include <optional>
#include <string>

#include "base/shard_states.h"
#include "cutover/cutover.h"
#include "fleet/in_transit.h"
#include "move/capacity.h"
#include "move/obstacles.h"
#include "move/session.h"
#include "move/state.h"
#include "move/verb.h"

/* An undo names the servers as its move did, and goes from --to to --from. */
MoveOptions in_direction(MoveOptions options);

/* One command on a shard that it has locked. session_ comes before cutover_, because the routers
 * that the source keeps are read under its locks. */
class MoveCommand
{
public:
    /* is_one_of_many: a list of moves prints all results at its end, so this prints none. It
     * resumes an interrupted move without --resume. */
    explicit MoveCommand(const MoveOptions& options, bool is_one_of_many = false);

    int execute();
    /* Of a move that has not begun; none if it has, or is done. Adds the takings of the move to
     * those of a list. */
    Obstacles find_obstacles(Capacity& capacity);
    /* Adds the takings of the way back of a move that has begun, or of an undo, if one is wanted.
     */
    void add_way_back(Capacity& capacity);
    /* The result of execute(): moved, undone ...; also if an error ended it when the target was
     * open. */
    const std::string& end_state() const { return end_state_; }
    /* How long writes were blocked, in milliseconds, if execute() has blocked them. */
    std::optional<std::int64_t> pause() const { return pause_; }
    /* The last lines of an error: the aliases that are paused. */
    std::string paused() { return cutover_.paused(); }

private:
    /* Read anew each time, because each step changes the records. */
    Standing standing() { return {session_.servers, move_}; }

    int begin();
    int resume();
    int undo();
    int abort();
    int drop_source();

    bool is_there_already(const Standing& now);
    int lead_there();
    bool begins() const { return !options_.is_aborted && !options_.drops_source; }
    int go_on();
    void keep_options(const Standing& now);
    void prepare();
    void copy_and_switch(std::optional<Connection>& snapshot);
    int finish(std::optional<Connection>& snapshot);
    void remove_copy(const Standing& now);
    void drop_closed(Connection& closed);

    /* The state of the shard by both records, with the servers as they were given; not of a shard
     * that has no record. */
    InTransit in_transit(const Standing& now);
    /* "\nHINT:  " with the commands that lead on; empty without a record. */
    std::string hint(const Standing& now);
    /* The same where no record leads on. */
    std::string how_to_begin();
    std::string how_to_move_back(const Standing& now);
    /* This move with another option, and with the options that it needs again. */
    std::string command_with(const std::string& option) const;
    std::string done() const { return options_.is_undone ? "undone" : kMoved; }
    /* The exit code: kFound if the rows of both sides differ. */
    int end(const std::string& state, bool is_equal = true)
    {
        end_state_ = state;
        if (!is_equal)
            return kFound;
        const std::vector<ShardState> states = {{move_.shard, state, ""}};
        return is_one_of_many_ ? kDone : print_states(states, options_.json);
    }

    const MoveOptions options_;
    const bool is_one_of_many_;
    Session session_;
    Connection& source_ = session_.servers.source;
    Connection& target_ = session_.servers.target;
    const Move& move_ = session_.move;
    Cutover cutover_;
    Routers& routers_ = cutover_.routers;
    const Limits& limits_ = cutover_.limits;
    const Workers on_target_;
    const Workers on_source_; /* of a way back */
    std::string end_state_;
    std::optional<std::int64_t> pause_;
};

/* Returns when the target is open, and for how many milliseconds writes were blocked; an error if
 * it is not after several tries. The snapshot is another connection to the target: it has the rows
 * as they were when the target was opened. */
std::int64_t switch_over(Servers& servers, const Move& move, Connection& snapshot,
                         Cutover& cutover);
