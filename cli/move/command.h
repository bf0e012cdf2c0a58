/* The command move on a set of shards: move.cpp reads the command line and finds out the work,
 * forward.cpp has a move, a resumed move and an undo, ends.cpp has the checks of abort and
 * complete, refusal.cpp the errors with the next commands. */

#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/shard_states.h"
#include "cutover/cutover.h"
#include "fleet/in_transit.h"
#include "move/capacity.h"
#include "move/obstacles.h"
#include "move/rehearsal.h"
#include "move/run.h"
#include "move/sets.h"
#include "move/session.h"
#include "move/state.h"
#include "move/verb.h"
#include "program/refusal.h"
#include "routers/routing.h"

/* An undo names the servers as its move did, and goes from --to to --from. */
MoveOptions in_direction(MoveOptions options);

/* One command on shards that it has locked. session_ comes before cutover_, because the routers
 * that the source keeps are read under its locks. */
class MoveCommand
{
public:
    /* is_one_of_many: a list of moves prints all results at its end, so this prints none. It
     * resumes an interrupted move without --resume. */
    MoveCommand(const MoveOptions& options, const std::vector<std::string>& schemas,
                bool is_one_of_many = false);

    int execute();
    /* Obstacles of a move that has not begun; none if it has, or is done. Adds the takings of the
     * move to those of a list. */
    Obstacles find_obstacles(Capacity& capacity);
    /* The trial of find_obstacles(): a list keeps it until the move begins. */
    const std::shared_ptr<const Tried>& tried() const { return tried_; }
    void use(std::shared_ptr<const Tried> tried) { tried_ = std::move(tried); }
    /* Adds the takings of reverse replication of a move that has begun, or of an undo, if one is
     * wanted.
     */
    void add_reverse(Capacity& capacity);
    void add_rows(Capacity& capacity); /* for a dry run */
    /* The result of execute(): moved, undone ...; also if an error ended it when the target was
     * open. */
    const std::string& end_state() const { return end_state_; }
    /* How long writes were blocked, in milliseconds, if execute() has blocked them. */
    std::optional<std::int64_t> pause() const { return pause_; }
    /* The next command of the set; empty if no record of a move is left. */
    std::string next();
    /* The last lines of an error: the aliases that are paused. */
    std::string paused() { return cutover_.paused(); }
    /* The times of --rehearse. */
    const Laps& laps() const { return laps_; }

private:
    /* Read anew each time, because each step changes the records. */
    Standing standing() { return {session_.servers, move_}; }
    Context context()
    {
        return {session_.servers, move_, cutover_, {verb(), options_.is_reversible}};
    }

    Verb verb() const;
    /* The phase in the direction in which the user names the servers. */
    Phase phase(const Standing& now);
    Routing routing();

    int begin(const Standing& now);
    int go_on(const Standing& now);
    int go_on();
    int lead_there(const Standing& now);
    int abort(const Standing& now, Act act);
    int complete(const Standing& now, Act act);
    [[noreturn]] void refuse(const Standing& now, program::Refusal refusal);
    std::string reason(const Standing& now, program::Refusal refusal);

    void require_there();
    void keep_options(const Standing& now);
    bool is_fenced();
    bool is_to_be_held();
    void follow();
    int hold();
    void prepare_cutover();
    void cut_over_in_turn(std::optional<Connection>& snapshot);
    int finish(std::optional<Connection>& snapshot);
    std::string tell_of_late_change();
    std::vector<std::string> compare_as_opened(std::optional<Connection>& snapshot);
    int end_source(const std::string& rest, bool was_compared);

    /* The state of the set by both records, with the servers as they were given; not of one that
     * has no record. */
    InTransit in_transit(const Standing& now);
    /* "\nHINT:  " with the next commands. */
    std::string hint(const Standing& now);
    std::string how_to_begin() const;
    std::string how_to_move_back(const Standing& now);
    /* An error if the records are not of a move from this source to this target. A fence must not
     * be lifted by a command that asks the wrong target, and the rows of a source must not be
     * dropped as those of a target. */
    void require_same_servers(const Standing& now);
    /* This move with another option, and with the options that it needs again. */
    std::string command_with(const std::string& option) const;
    std::string done() const { return verb() == Verb::undo ? "undone" : kMoved; }
    /* The variables of a --switch-command, for each shard: SHARD=5, SCHEMA=insta5 */
    std::vector<std::vector<std::string>> variables() const;
    /* The exit code: kFound if the rows of both sides differ. */
    int end(const std::string& state, bool is_equal = true)
    {
        end_state_ = state;
        if (!is_equal)
            return kFound;
        if (is_one_of_many_)
            return kDone;
        const std::string next = this->next();
        std::vector<ShardState> states;
        for (const Shard& shard : move_.shards)
            states.push_back({shard, state, "", "", "", next});
        return print_states(states, options_.json);
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
    /* Connection strings for the servers: of the source for the target, and the other way round. */
    const std::string source_dsn_;
    const std::string target_dsn_;
    std::shared_ptr<const Tried> tried_;
    bool is_recorded_ = false; /* the source has a record of this move */
    std::string end_state_;
    std::optional<std::int64_t> pause_;
    Laps laps_;
};

/* Returns when the target is open, and for how many milliseconds writes were blocked; an error if
 * it is not after several tries. The snapshot is another connection to the target: it has the rows
 * as they were when the target was opened. */
std::int64_t cut_over(Servers& servers, const Move& move, Connection& snapshot, Cutover& cutover);

/* The steps before the cutover, in this order. Clients write to the source meanwhile. Each step
 * skips its completed parts, because a move can be resumed. */

void prepare_source(Servers& servers, const Move& move, const Routing& routing, bool is_reversible,
                    bool is_held);
/* The shards are there and closed afterwards, and the subscription brings the changes since the
 * snapshot. copy_jobs, index_jobs: how many tables are copied, and indexes built, at the same time.
 * Late if the definition is being changed just now; MustStartAnew if it has changed. */
void copy_shards(Servers& servers, const Move& move, const std::string& publisher,
                 const Tried* tried, int copy_jobs, int index_jobs, Laps& laps);
/* Returns when the lag of the target is at most max_lag, and the worker runs. There is no deadline:
 * clients write meanwhile, and Ctrl-C ends the wait. */
void await_lag(Servers& servers, const Move& move, Clock::duration max_lag);

/* Replication can have missed rows: a table was rewritten, or a server is another one than it was.
 */
bool may_differ(Servers& servers, const Move& move);
/* The rows of all tables up to this size, in bytes, and of all tables if they may differ.
 * MustStartAnew if the target has others. */
void compare_before_cutover(Servers& servers, const Move& move, std::uint64_t max_size, Laps& laps);

/* Each connection string of the list is connected to once, all at the same time, and no connection
 * stays open. Failure that tells the problems of all entries: a server that cannot be read, a
 * number that is not that of the schema there, a number that several schemas of the source have;
 * UsageError if one of them is a wrong string, or one server as both sides.
 *
 * begins: moves may begin. Else they act on moves that exist, each by itself: a server that is down
 * is an error of its own moves, and not of the list. A set of which a part is missing in the list
 * is a problem, too. */
std::vector<ListedSet> read_list(const MoveOptions& options, bool begins);
