/* The command move on one shard. Its parts are in move.cpp (reads the command
 * line), forward.cpp (a move, a resumed move and an undo) and ends.cpp (abort, drop-source). */

#pragma once

#include <optional>
#include <string>

#include "base/output.h"
#include "move/moving.h"
#include "move/obstacles.h"
#include "move/replication.h"
#include "move/routers.h"
#include "move/standing.h"
#include "verbs.h"

/* An undo names the servers as its move did, and goes from --to to --from. */
Options in_direction(Options options);

/* Prints them; the exit code. */
int print_obstacles(const std::vector<Obstacle>& obstacles, bool json);

inline const std::string kWithWayBack = " with a way back";

/* One command on a shard that it has locked. session_ comes before routers_, because the routers
 * that the source keeps are read under its locks. */
class MoveCommand
{
public:
    explicit MoveCommand(const Options& options)
        : options_(options), session_(options.from, options.to, options.schema),
          routers_(choose_routing(options, source_, move_), "the shard is"),
          limits_{std::chrono::milliseconds(static_cast<int>(options.timeout * 1000)),
                  static_cast<std::int64_t>(options.max_lag)},
          on_target_{dsn_of(source_, options.source), options.trusts_owners},
          on_source_{dsn_of(target_, options.target), options.trusts_owners}
    {
    }

    int execute();
    /* Of a move that has not begun; none if it has, or is done. */
    std::vector<Obstacle> find_obstacles();
    /* The result of execute(): moved, undone ...; also if an error ended it when the target was
     * open. */
    const std::string& end_state() const { return end_state_; }
    /* How long writes were blocked, in milliseconds, if execute() has blocked them. */
    std::optional<std::int64_t> pause() const { return pause_; }
    /* The last lines of an error: the aliases that are paused. */
    std::string paused() { return routers_.paused(remedy_); }

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
    void tell_size(std::size_t obstacles);
    bool begins() const { return !options_.is_aborted && !options_.drops_source; }
    int go_on();
    void keep_options(const Standing& now);
    void prepare();
    void copy_and_switch(std::optional<Connection>& snapshot);
    int finish(std::optional<Connection>& snapshot);
    void remove_copy(const Standing& now);

    std::string how_to_move_back() const;
    /* For a hint, with ... in the place of the other options. */
    std::string command_with(const std::string& option) const
    {
        return move_command(options_.schema, "... " + option) + " goes on";
    }
    std::string done() const { return options_.is_undone ? "undone" : "moved"; }
    /* The exit code: kFound if the rows of both sides differ. A list of moves prints all results at
     * its end, so one of many prints none here. */
    int end(const std::string& state, bool is_equal = true)
    {
        end_state_ = state;
        return !is_equal                 ? kFound
               : options_.is_one_of_many ? kDone
                                         : print_states({{move_.shard, state, ""}}, options_.json);
    }

    const Options options_;
    Session session_;
    Connection& source_ = session_.servers.source;
    Connection& target_ = session_.servers.target;
    const Move& move_ = session_.move;
    Routers routers_;
    std::string remedy_ = command_with(options_.is_undone ? "--undo" : "--resume");
    const Limits limits_;
    const Workers on_target_;
    const Workers on_source_; /* of a way back */
    std::string end_state_;
    std::optional<std::int64_t> pause_;
};
