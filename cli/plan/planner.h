/* Which shards to move so that servers carry the same. Nothing but numbers is read here: no server,
 * no output.
 *
 * Shards of less than a tenth of the median weight count as empty. Most are new and will be filled,
 * so they are spread by number; all others are spread by weight. The load of a server is the weight
 * of the shards of one kind there, and each kind is balanced by itself.
 *
 * The goal of a server is the mean load, or 0 if it is drained. Every move takes a shard from above
 * the goal to below the goal, and brings both servers closer to it: the sum of the squares of
 * load - goal falls with every move, so that a plan can be stopped anywhere. */

#pragma once

#include <cstddef>
#include <string>
#include <vector>

struct PlannedServer {
    std::string name; /* settles ties: no two servers have the same */
    bool is_drained = false;
};

struct PlannedShard {
    int number;
    std::string schema;
    std::size_t server; /* its place in the list of servers */
    double weight;
    bool may_move = true;
};

struct PlanLimits {
    double threshold = 0.1; /* so far from the mean, as a part of it, is balanced */
    std::size_t max_moves = static_cast<std::size_t>(-1);
    /* Weights are load: a shard that does nothing may be large, and moves only from a drained
     * server. */
    bool spreads_empty = true;
};

struct PlannedMove {
    std::size_t shard; /* its place in the list of shards */
    std::size_t from;
    std::size_t to;
};

/* Tells for each shard of the list whether it counts as empty. Shards that may not move count in
 * the median, too, so an exclusion does not change the kind of another shard. */
std::vector<bool> find_empty(const std::vector<PlannedShard>& shards);

/* The moves in their order: first the moves that empty drained servers, then always the move that
 * gains most, so that a plan can be stopped anywhere. No shard moves twice, so there are never more
 * moves than shards. The order of the arguments has no influence: the same fleet has the same plan.
 */
std::vector<PlannedMove> plan_moves(const std::vector<PlannedServer>& servers,
                                    const std::vector<PlannedShard>& shards,
                                    const PlanLimits& limits);

/* Is each server within the threshold of its goal, in both kinds of shards? */
bool is_balanced(const std::vector<PlannedServer>& servers, const std::vector<PlannedShard>& shards,
                 const PlanLimits& limits);
