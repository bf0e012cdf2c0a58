/* The command split: split.cpp has the command line, cutover.cpp changes the server of the shards,
 * ends.cpp has abort and complete. */

#pragma once

#include <algorithm>
#include <optional>
#include <string>
#include <vector>

#include "base/timeouts.h"
#include "cutover/cutover.h"
#include "fleet/records.h"
#include "postgres/obstacles.h"
#include "split/session.h"
#include "split/verb.h"

/* One command on the servers of a split. It holds their locks until it is destroyed, so no other
 * command changes the record of the split meanwhile. */
class SplitCommand
{
public:
    explicit SplitCommand(const SplitOptions& options);

    int execute();
    /* The last lines of an error: the aliases that are paused. */
    std::string paused() { return cutover_.paused(); }

private:
    int begin();
    int resume();
    int abort();
    int complete();

    /* The record on the old server, read anew each time, because each step changes it. */
    std::optional<SplitState> state() { return read_split(old_); }
    /* A Failure if these are not the servers with which the split began. */
    void require_same_servers(const SplitState& state);
    /* A Failure if --from is not the server on which the shards were closed. */
    void require_home(const SplitState& state);
    void keep_options();
    int go_on();
    void make_triggers();
    /* A Failure if an obstacle has come. */
    void look_again();
    void prepare();
    void cut_over();
    /* Connects promoted_, if it is not connected. */
    void connect_again();
    void close(Connection& keeper, Clock::time_point deadline);
    /* The record says that the promotion is requested, of this start of the standby. */
    void note_request(Clock::time_point deadline);
    std::string unknown_outcome() const;
    void open_standby();
    int finish();
    void lead_there();
    void tell_of_slot();
    static void remove_fence(Connection& connection);
    Shards leaving() const;
    /* Prints this state for the shards that leave. Returns the exit code. */
    int end(const std::string& state);
    std::string tell_of_writes() const;

    /* The deadline for opening the shards of either server. */
    Clock::time_point deadline_of_opening() const
    {
        return Clock::now() + std::max<Clock::duration>(timeouts::kOpening, limits_.timeout);
    }

    /* The order of the members matters: servers_ takes the locks, and the record that shards_ and
     * cutover_ read must not change any more. */
    const SplitOptions options_;
    SplitServers servers_;
    std::optional<Connection> promoted_; /* to the standby, too: of see_promoted() */
    Connection& old_ = servers_.old;
    std::vector<SplitShard> shards_;
    Cutover cutover_;
    Routers& routers_ = cutover_.routers;
    const Limits& limits_ = cutover_.limits;
    Clock::time_point closed_at_; /* zero: this command has not closed the shards */
    Clock::time_point opened_at_; /* zero: nor opened them on the new server */
    std::string read_only_;       /* why the new server is; empty: it can be written to */
};

/* More than this is an obstacle; less is waited for. */
inline constexpr std::int64_t kFarBehind = 16 << 20;

/* Changes nothing on either server. The schemas of all shards count, also of those that stay,
 * because their tables get triggers, too. */
Obstacles find_obstacles(Connection& old, Connection& standby,
                         const std::vector<SplitShard>& shards, const Limits& limits);

/* Obstacles of the old server that can also come while the split is under way: they would lose
 * rows, or leave tables open on both servers. */
Obstacles find_obstacles_of_closing(Connection& old, const std::vector<SplitShard>& shards);

/* Runs the SQL of the steps after the promotion, and rolls it back. Each error is an obstacle. */
Obstacles try_after_promotion(Connection& old, Connection& standby,
                              const std::vector<SplitShard>& shards);

/* Obstacles of the settings that have an effect at the promotion, and of the clocks: no transaction
 * would end on one of the servers, or no ID be made. They can also come while the split is under
 * way. */
Obstacles find_obstacles_of_promotion(Connection& old, Connection& standby,
                                      const std::vector<SplitShard>& shards);

/* connections: those of the aliases to the old server, now. PgBouncer opens as many to the standby
 * when it leads the clients there. */
Obstacles find_too_few_connections(Connection& standby, int connections);

/* Warnings: they do not stop the split. */
void tell_of_both_servers(Connection& old, Connection& standby);
/* The command that gives the new server a slot of its own, or makes it a follower. when: "Now: ".
 */
void tell_of_global_tables(Connection& old, Connection& standby, const std::string& when);
