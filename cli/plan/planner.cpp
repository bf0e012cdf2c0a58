#include "plan/planner.h"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <optional>
#include <set>
#include <tuple>
#include <utility>

namespace
{

/* How much closer two servers come to their goals when a shard moves between them, half for each.
 * One is by excess above its goal, the other by room below it. The gain is the whole weight if
 * neither passes its goal. For one server it is |excess| - |excess - weight|, which min() writes
 * without absolute values, as excess and room are not negative. */
double gain_of(double weight, double excess, double room)
{
    return (std::min(weight, 2 * excess - weight) + std::min(weight, 2 * room - weight)) / 2;
}

struct Step {
    std::size_t shard;
    std::size_t from;
    std::size_t to;
    double weight;
};

/* The shards of one kind, and their weight on each server. Servers and shards are numbered in
 * the order of their names, so that ties are settled in one way. */
class Loads
{
public:
    /* slack: a server that is so close to the goal is balanced at any threshold. */
    Loads(std::vector<bool> drained, double slack)
        : slack_(slack), servers_(drained.size()), drained_(std::move(drained)),
          kept_(static_cast<double>(std::count(drained_.begin(), drained_.end(), false)))
    {
    }

    void add(std::size_t shard, std::size_t server, double weight, bool may_move)
    {
        servers_[server].load += weight;
        total_ += weight;
        if (may_move)
            servers_[server].movable.insert({weight, shard});
    }

    /* The next move that empties drained servers: the heaviest shard to the emptiest server. The
     * heaviest first, because the light ones at the end even out the differences between the
     * targets. A drained server is emptied to the last movable shard, whatever the balance of the
     * others. */
    std::optional<Step> next_of_drain() const
    {
        std::optional<Step> best;
        for (std::size_t i = 0; i < servers_.size(); i++) {
            const Movable& movable = servers_[i].movable;
            if (!drained_[i] || movable.empty())
                continue;
            const double weight = movable.rbegin()->first;
            if (!best || weight > best->weight)
                best = {first_of(movable, weight)->second, i, emptiest(), weight};
        }
        return best;
    }

    /* The move that gains most, when drained servers are empty. The emptiest server is the best
     * target for any shard, because gain_of() grows with the room. */
    std::optional<Step> next_of_balance(double threshold) const
    {
        const std::size_t target = emptiest();
        const double room = goal() - servers_[target].load;
        Choice best;
        std::optional<Step> step;
        for (std::size_t i = 0; i < servers_.size() && room > 0; i++) {
            const double excess = servers_[i].load - goal();
            /* One of the two beyond the tolerance is enough: a new server is filled although no
             * other one is too full by itself. */
            if (excess <= 0 || std::max(excess, room) <= tolerance(threshold))
                continue;
            const Choice choice = choose(servers_[i].movable, excess, room);
            if (choice.rank() > best.rank()) {
                best = choice;
                step = {choice.shard, i, target, choice.weight};
            }
        }
        return step;
    }

    /* On its new server the shard is not movable any more: it would be copied twice. So each step
     * takes a shard out, and the loops of plan_moves() end. */
    void make(const Step& step)
    {
        servers_[step.from].load -= step.weight;
        servers_[step.to].load += step.weight;
        servers_[step.from].movable.erase({step.weight, step.shard});
    }

    bool is_balanced(double threshold) const
    {
        for (std::size_t i = 0; i < servers_.size(); i++)
            if (drained_[i] ? servers_[i].load > 0
                            : std::abs(servers_[i].load - goal()) > tolerance(threshold))
                return false;
        return true;
    }

private:
    /* Ordered by weight and then by number, so the best shard of a weight is found in logarithmic
     * time, and ties go to the smallest number. */
    using Movable = std::set<std::pair<double, std::size_t>>; /* weight and shard */

    struct Server {
        double load = 0;
        Movable movable;
    };

    struct Choice {
        double gain = 0;
        double excess = 0;
        double weight = 0;
        std::size_t shard = 0;

        /* The most gain, then from the fullest server, then the least weight. */
        std::tuple<double, double, double> rank() const { return {gain, excess, -weight}; }
    };

    static Movable::const_iterator first_of(const Movable& movable, double weight)
    {
        return movable.lower_bound({weight, 0});
    }

    /* The gain grows with the weight up to the smaller of excess and room, and not beyond. So the
     * best shard is one of the two beside that. */
    static Choice choose(const Movable& movable, double excess, double room)
    {
        Choice best;
        const auto consider = [&](Movable::const_iterator shard) {
            const double gain = gain_of(shard->first, excess, room);
            const Choice choice = {gain, excess, shard->first, shard->second};
            /* Copying a shard for a smaller gain costs more than it balances. */
            if (gain >= shard->first / 2 && choice.rank() > best.rank())
                best = choice;
        };
        const auto above = first_of(movable, std::min(excess, room));
        if (above != movable.end())
            consider(above);
        if (above != movable.begin())
            consider(first_of(movable, std::prev(above)->first));
        return best;
    }

    /* The mean of the servers that are kept. The shards of drained servers are in total_, because
     * they come to the others. Shards that cannot leave a drained server are in it as well, and
     * then the others stay below the goal. */
    double goal() const { return total_ / kept_; }
    double tolerance(double threshold) const { return std::max(threshold * goal(), slack_); }

    std::size_t emptiest() const
    {
        std::size_t found = servers_.size();
        for (std::size_t i = 0; i < servers_.size(); i++)
            if (!drained_[i] &&
                (found == servers_.size() || servers_[i].load < servers_[found].load))
                found = i;
        return found;
    }

    /* slack_ is in the unit of the weights. */
    double slack_;
    std::vector<Server> servers_;
    std::vector<bool> drained_;
    double kept_; /* how many servers are not drained */
    double total_ = 0;
};

/* The numbers of things in the order of their names. */
template <typename Thing, typename Name>
std::vector<std::size_t> order_by(const std::vector<Thing>& things, Name name)
{
    std::vector<std::size_t> order(things.size());
    std::iota(order.begin(), order.end(), 0);
    std::sort(order.begin(), order.end(), [&](std::size_t one, std::size_t two) {
        return name(things[one]) < name(things[two]);
    });
    return order;
}

/* Both kinds of shards, and the order of the names in which Loads numbers them. */
struct Fleet {
    Fleet(const std::vector<PlannedServer>& servers, const std::vector<PlannedShard>& shards,
          bool spreads_empty)
        : server_order(order_by(servers, [](const PlannedServer& server) { return server.name; })),
          shard_order(order_by(shards, [](const PlannedShard& shard) {
              return std::tie(shard.number, shard.schema);
          }))
    {
        std::vector<bool> drained;
        std::vector<std::size_t> rank_of(servers.size());
        for (const std::size_t server : server_order) {
            rank_of[server] = drained.size();
            drained.push_back(servers[server].is_drained);
        }
        /* Numbers of shards that differ by one cannot be closer: both are less than 1 from the
         * mean. */
        kinds = {Loads(drained, 0), Loads(drained, 0.999)};
        const std::vector<bool> empty = find_empty(shards);
        for (std::size_t i = 0; i < shards.size(); i++) {
            const PlannedShard& shard = shards[shard_order[i]];
            const bool is_empty = empty[shard_order[i]];
            if (is_empty && !spreads_empty && !servers[shard.server].is_drained)
                continue;
            /* An empty shard weighs 1, so its kind is balanced by number. */
            kinds[is_empty ? 1 : 0].add(i, rank_of[shard.server], is_empty ? 1 : shard.weight,
                                        shard.may_move);
        }
    }

    /* The places in the lists of the caller, by rank. */
    std::vector<std::size_t> server_order;
    std::vector<std::size_t> shard_order;
    std::vector<Loads> kinds; /* by weight, and the empty ones by number */
};

} // namespace

std::vector<bool> find_empty(const std::vector<PlannedShard>& shards)
{
    std::vector<double> weights;
    /* Shards of weight 0 are left out: with many new ones the median would be 0, and no shard that
     * holds a few rows would count as empty. */
    for (const PlannedShard& shard : shards)
        if (shard.weight > 0)
            weights.push_back(shard.weight);
    /* The median and not the mean, which one large shard would raise above all others. */
    const auto middle = weights.begin() + static_cast<std::ptrdiff_t>(weights.size() / 2);
    if (middle != weights.end())
        std::nth_element(weights.begin(), middle, weights.end());
    const double least = middle == weights.end() ? 0 : *middle / 10;
    std::vector<bool> empty;
    for (const PlannedShard& shard : shards)
        empty.push_back(shard.weight <= 0 || shard.weight < least);
    return empty;
}

std::vector<PlannedMove> plan_moves(const std::vector<PlannedServer>& servers,
                                    const std::vector<PlannedShard>& shards,
                                    const PlanLimits& limits)
{
    Fleet fleet(servers, shards, limits.spreads_empty);
    std::vector<PlannedMove> moves;
    const auto make_all = [&](Loads& loads, auto next) {
        while (moves.size() < limits.max_moves) {
            const std::optional<Step> step = next(loads);
            if (!step)
                return;
            loads.make(*step);
            moves.push_back({fleet.shard_order[step->shard], fleet.server_order[step->from],
                             fleet.server_order[step->to]});
        }
    };
    /* Servers are emptied first: with --max-moves the plan may end before the others are balanced.
     * Shards with weight go before empty ones, because they decide the load. */
    for (Loads& loads : fleet.kinds)
        make_all(loads, [](const Loads& now) { return now.next_of_drain(); });
    for (Loads& loads : fleet.kinds)
        make_all(loads, [&](const Loads& now) { return now.next_of_balance(limits.threshold); });
    return moves;
}

bool is_balanced(const std::vector<PlannedServer>& servers, const std::vector<PlannedShard>& shards,
                 const PlanLimits& limits)
{
    const Fleet fleet(servers, shards, limits.spreads_empty);
    return std::all_of(fleet.kinds.begin(), fleet.kinds.end(),
                       [&](const Loads& loads) { return loads.is_balanced(limits.threshold); });
}
