/* The planner of snowflake-shard: properties of the plan of any fleet. */
#include "plan/planner.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <map>
#include <set>

#include <gtest/gtest.h>

#include "random_seed.h"

namespace
{

struct Fleet {
    std::vector<PlannedServer> servers;
    std::vector<PlannedShard> shards;
    PlanLimits limits;

    std::vector<PlannedMove> plan() const { return plan_moves(servers, shards, limits); }
};

void add_servers(Fleet& fleet, std::size_t count)
{
    for (std::size_t i = 0; i < count; i++)
        fleet.servers.push_back({"db" + std::to_string(i)});
}

void add_shards(Fleet& fleet, std::size_t server, int count, double weight)
{
    for (int i = 0; i < count; i++) {
        const int number = static_cast<int>(fleet.shards.size());
        fleet.shards.push_back({number, "insta" + std::to_string(number), server, weight});
    }
}

/* Sizes from even to very uneven, some empty; servers that are new, drained or crowded; exclusions.
 */
Fleet random_fleet(std::mt19937_64& random)
{
    Fleet fleet;
    const auto servers = static_cast<std::size_t>(between(random, 1, 8));
    add_servers(fleet, servers);
    for (std::size_t i = 1; i < servers; i++)
        fleet.servers[i].is_drained = between(random, 0, 5) == 0;
    const double spread = static_cast<double>(between(random, 0, 8)) / 2;
    const std::int64_t empties = between(random, 0, 3);
    const std::int64_t exclusions = between(random, 0, 1);
    const std::int64_t crowded = between(random, 1, static_cast<std::int64_t>(servers));
    for (std::int64_t i = between(random, 0, 200); i > 0; i--) {
        const double factor =
            std::exp(spread * std::uniform_real_distribution<double>{-1, 1}(random));
        const bool is_empty = between(random, 0, 9) < empties;
        add_shards(fleet, static_cast<std::size_t>(between(random, 0, crowded - 1)), 1,
                   is_empty ? static_cast<double>(between(random, 0, 1))
                            : std::round(1e6 * factor) / 10);
        fleet.shards.back().may_move = between(random, 0, 9) >= exclusions;
    }
    fleet.limits.threshold = static_cast<double>(between(random, 0, 20)) / 100;
    return fleet;
}

/* Of each server, by weight and by the number of empty shards. */
using Loads = std::vector<std::array<double, 2>>;

Loads loads_of(const Fleet& fleet)
{
    const std::vector<bool> empty = find_empty(fleet.shards);
    Loads loads(fleet.servers.size());
    for (std::size_t i = 0; i < fleet.shards.size(); i++)
        loads[fleet.shards[i].server].at(empty[i] ? 1 : 0) += empty[i] ? 1 : fleet.shards[i].weight;
    return loads;
}

Loads goals_of(const Fleet& fleet)
{
    std::array<double, 2> total = {};
    double kept = 0;
    const Loads loads = loads_of(fleet);
    for (std::size_t i = 0; i < loads.size(); i++) {
        kept += fleet.servers[i].is_drained ? 0 : 1;
        for (std::size_t kind = 0; kind < 2; kind++)
            total.at(kind) += loads[i].at(kind);
    }
    Loads goals;
    for (const PlannedServer& server : fleet.servers)
        goals.push_back(
            {server.is_drained ? 0 : total[0] / kept, server.is_drained ? 0 : total[1] / kept});
    return goals;
}

/* The distances from the mean, of each kind: the sum of their squares, and the largest. */
struct Imbalance {
    std::array<double, 2> sums = {};
    std::array<double, 2> largest = {};
};

Imbalance imbalance_of(const Fleet& fleet)
{
    Imbalance imbalance;
    const Loads loads = loads_of(fleet);
    const Loads goals = goals_of(fleet);
    for (std::size_t i = 0; i < loads.size(); i++)
        for (std::size_t kind = 0; kind < 2; kind++) {
            const double distance = std::abs(loads[i].at(kind) - goals[i].at(kind));
            imbalance.sums.at(kind) += distance * distance;
            imbalance.largest.at(kind) = std::max(imbalance.largest.at(kind), distance);
        }
    return imbalance;
}

template <typename Check>
void for_random_fleets(const char* test, Check check)
{
    auto random = seeded_random(test);
    for (int i = 0; i < 2000 && !testing::Test::HasFailure(); i++) {
        const Fleet fleet = random_fleet(random);
        check(fleet, fleet.plan(), random);
    }
}

TEST(Planner, EveryMoveImprovesTheBalance)
{
    for_random_fleets("EveryMoveImprovesTheBalance", [](Fleet fleet, const auto& plan, auto&) {
        const std::vector<bool> empty = find_empty(fleet.shards);
        for (const PlannedMove& move : plan) {
            const Imbalance before = imbalance_of(fleet);
            fleet.shards[move.shard].server = move.to;
            const Imbalance after = imbalance_of(fleet);
            const std::size_t kind = empty[move.shard] ? 1 : 0;
            ASSERT_LT(after.sums.at(kind), before.sums.at(kind));
            ASSERT_LE(after.largest.at(kind), before.largest.at(kind) * (1 + 1e-9));
            ASSERT_EQ(after.sums.at(1 - kind), before.sums.at(1 - kind));
        }
    });
}

TEST(Planner, AShardMovesOnceFromWhereItIs)
{
    for_random_fleets("AShardMovesOnceFromWhereItIs",
                      [](const Fleet& fleet, const auto& plan, auto&) {
                          std::set<std::size_t> moved;
                          for (const PlannedMove& move : plan) {
                              ASSERT_TRUE(moved.insert(move.shard).second);
                              ASSERT_EQ(move.from, fleet.shards[move.shard].server);
                              ASSERT_NE(move.from, move.to);
                              ASSERT_TRUE(fleet.shards[move.shard].may_move);
                              ASSERT_FALSE(fleet.servers[move.to].is_drained);
                          }
                      });
}

TEST(Planner, ADrainedServerKeepsOnlyWhatMayNotMove)
{
    for_random_fleets(
        "ADrainedServerKeepsOnlyWhatMayNotMove", [](Fleet fleet, const auto& plan, auto&) {
            for (const PlannedMove& move : plan)
                fleet.shards[move.shard].server = move.to;
            for (const PlannedShard& shard : fleet.shards)
                ASSERT_FALSE(fleet.servers[shard.server].is_drained && shard.may_move);
        });
}

/* Of shards that are small beside the threshold, and may all move. */
TEST(Planner, ThePlanEndsWithinTheThreshold)
{
    auto random = seeded_random("ThePlanEndsWithinTheThreshold");
    for (int i = 0; i < 200; i++) {
        Fleet fleet;
        const auto servers = static_cast<std::size_t>(between(random, 1, 8));
        add_servers(fleet, servers);
        for (std::size_t shard = 0; shard < 100 * servers; shard++)
            add_shards(fleet,
                       static_cast<std::size_t>(between(
                           random, 0, between(random, 0, static_cast<std::int64_t>(servers) - 1))),
                       1, static_cast<double>(between(random, 50, 200)));
        for (const PlannedMove& move : fleet.plan())
            fleet.shards[move.shard].server = move.to;
        ASSERT_TRUE(is_balanced(fleet.servers, fleet.shards, {0.1}));
        ASSERT_TRUE(fleet.plan().empty()) << "a balanced fleet has an empty plan";
    }
}

/* A move of a drain has to be made; any other brings its two servers closer to the mean by half of
 * the weight at least, and is made only if one of them is beyond the threshold. */
TEST(Planner, AMoveIsWorthItsWeight)
{
    for_random_fleets("AMoveIsWorthItsWeight", [](Fleet fleet, const auto& plan, auto&) {
        const std::vector<bool> empty = find_empty(fleet.shards);
        const Loads goals = goals_of(fleet);
        for (const PlannedMove& move : plan) {
            const std::size_t kind = empty[move.shard] ? 1 : 0;
            const auto distances = [&] {
                const Loads loads = loads_of(fleet);
                return std::pair{std::abs(loads[move.from].at(kind) - goals[move.from].at(kind)),
                                 std::abs(loads[move.to].at(kind) - goals[move.to].at(kind))};
            };
            const auto [from_before, to_before] = distances();
            fleet.shards[move.shard].server = move.to;
            if (fleet.servers[move.from].is_drained)
                continue;
            const auto [from_after, to_after] = distances();
            const double weight = kind == 1 ? 1 : fleet.shards[move.shard].weight;
            ASSERT_GE((from_before + to_before - from_after - to_after) / 2,
                      weight / 2 - 1e-6 * weight);
            ASSERT_GT(std::max(from_before, to_before) * (1 + 1e-9),
                      fleet.limits.threshold * goals[move.to].at(kind));
        }
    });
}

TEST(Planner, FewerMovesAreTheBeginningOfThePlan)
{
    for_random_fleets("FewerMovesAreTheBeginningOfThePlan",
                      [](Fleet fleet, const auto& plan, auto& random) {
                          fleet.limits.max_moves = static_cast<std::size_t>(between(random, 0, 20));
                          const auto begin = fleet.plan();
                          ASSERT_EQ(begin.size(), std::min(plan.size(), fleet.limits.max_moves));
                          for (std::size_t i = 0; i < begin.size(); i++)
                              ASSERT_EQ(begin[i].shard, plan[i].shard);
                      });
}

using Names = std::vector<std::array<std::string, 3>>;

Names names_of(const Fleet& fleet, const std::vector<PlannedMove>& plan)
{
    Names names;
    for (const PlannedMove& move : plan)
        names.push_back({fleet.shards[move.shard].schema, fleet.servers[move.from].name,
                         fleet.servers[move.to].name});
    return names;
}

TEST(Planner, TheOrderOfTheArgumentsHasNoInfluence)
{
    for_random_fleets("TheOrderOfTheArgumentsHasNoInfluence", [](const Fleet& fleet,
                                                                 const auto& plan, auto& random) {
        Fleet other = fleet;
        std::shuffle(other.servers.begin(), other.servers.end(), random);
        std::shuffle(other.shards.begin(), other.shards.end(), random);
        for (PlannedShard& shard : other.shards)
            shard.server = static_cast<std::size_t>(
                std::find_if(other.servers.begin(), other.servers.end(),
                             [&](const PlannedServer& server) {
                                 return server.name == fleet.servers[shard.server].name;
                             }) -
                other.servers.begin());
        ASSERT_EQ(names_of(other, other.plan()), names_of(fleet, plan));
    });
}

TEST(Planner, EmptyShardsAreSpreadByNumber)
{
    Fleet fleet;
    add_servers(fleet, 3);
    for (std::size_t server = 0; server < 3; server++)
        add_shards(fleet, server, 10, 1000);
    add_shards(fleet, 0, 1, 99);
    EXPECT_TRUE(is_balanced(fleet.servers, fleet.shards, {0.1})) << "one cannot be spread";
    add_shards(fleet, 0, 8, 99);
    EXPECT_FALSE(is_balanced(fleet.servers, fleet.shards, {0.1}));
    const std::vector<PlannedMove> plan = fleet.plan();
    ASSERT_EQ(plan.size(), 6);
    EXPECT_EQ(plan[0].shard, 30) << "of equal ones the lowest number";
    std::map<std::size_t, int> arrived;
    for (const PlannedMove& move : plan) {
        EXPECT_EQ(fleet.shards[move.shard].weight, 99);
        arrived[move.to]++;
    }
    EXPECT_EQ(arrived, (std::map<std::size_t, int>{{1, 3}, {2, 3}}));
    for (std::size_t i = 30; i < 39; i++)
        fleet.shards[i].weight = 100;
    EXPECT_TRUE(fleet.plan().empty()) << "a tenth of the median is not empty, and within 10%";
}

TEST(Planner, TheLargestUsefulMoveIsFirst)
{
    Fleet fleet;
    add_servers(fleet, 2);
    for (const double weight : {10, 20, 70, 40, 30, 30})
        add_shards(fleet, 0, 1, weight);
    const std::vector<PlannedMove> plan = fleet.plan();
    ASSERT_EQ(plan.size(), 2);
    EXPECT_EQ(plan[0].shard, 2) << "70 of 200";
    EXPECT_EQ(plan[1].shard, 4) << "30 and no more, the one with the lower number";
}

TEST(Planner, NothingIsMovedForLittle)
{
    Fleet fleet;
    add_servers(fleet, 2);
    add_shards(fleet, 0, 2, 100);
    add_shards(fleet, 1, 1, 99);
    EXPECT_TRUE(fleet.plan().empty()) << "100 of 200 to 99 would gain 1";
    EXPECT_FALSE(is_balanced(fleet.servers, fleet.shards, {0.1}));
}

TEST(Planner, FleetsOfNothing)
{
    Fleet fleet;
    add_servers(fleet, 2);
    EXPECT_TRUE(fleet.plan().empty());
    EXPECT_TRUE(is_balanced(fleet.servers, fleet.shards, {0}));
    add_shards(fleet, 0, 4, 0);
    EXPECT_EQ(fleet.plan().size(), 2) << "without weights all are empty";
    fleet.servers[0].is_drained = true;
    EXPECT_EQ(fleet.plan().size(), 4);
}

} // namespace
