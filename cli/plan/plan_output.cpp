#include <algorithm>
#include <array>
#include <cmath>
#include <cstdio>
#include <iostream>

#include "base/output.h"
#include "base/table.h"
#include "plan/plan.h"

namespace
{

/* The load of a server. */
struct Load {
    std::int64_t shards = 0;
    std::int64_t empty = 0;
    std::int64_t size = 0;
    double weight = 0;
};

/* Weights that are neither sizes nor numbers of shards have a column of their own. Else the column
 * would repeat the size or the number. */
void name_weights(Table& table, const PlanOptions& options)
{
    const auto column = std::find(table.columns.begin(), table.columns.end(), "weight");
    if (!options.weights.empty())
        return;
    if (options.by != "size" && options.by != "shards") {
        *column = options.by;
        return;
    }
    const auto place = column - table.columns.begin();
    table.columns.erase(column);
    for (auto& row : table.rows)
        row.erase(row.begin() + place);
}

/* The number without zeros at the end, and without an exponent from 0.0001 to 10^12: weights are
 * counts, or numbers of the user's file. */
std::string text_of(double number)
{
    std::array<char, 32> text = {};
    std::snprintf(text.data(), text.size(), "%.12g", number);
    return text.data();
}

void print_moves(const Plan& plan, const PlanOptions& options)
{
    Table table = {{"shard", "schema", "weight", "size", "from", "to"}, {}};
    for (const PlannedMove& move : plan.moves) {
        const PlacedShard& shard = plan.distribution.shards[move.shard];
        table.rows.push_back({shard.number, shard.schema, text_of(plan.shards[move.shard].weight),
                              pretty_size(shard.size), plan.servers[move.from].name,
                              plan.servers[move.to].name});
    }
    name_weights(table, options);
    print(table, Format::table);
    std::cout << "\n";
}

/* Which shards are empty is decided by weight alone, so it is the same before and after the
 * moves. */
std::vector<Load> loads_of(const Plan& plan, bool is_after)
{
    std::vector<std::size_t> servers;
    for (const PlannedShard& shard : plan.shards)
        servers.push_back(shard.server);
    for (const PlannedMove& move : plan.moves)
        if (is_after)
            servers[move.shard] = move.to;
    const std::vector<bool> empty = find_empty(plan.shards);
    std::vector<Load> loads(plan.servers.size());
    for (std::size_t i = 0; i < plan.shards.size(); i++) {
        Load& load = loads[servers[i]];
        load.shards++;
        load.empty += empty[i] ? 1 : 0;
        load.size += plan.distribution.shards[i].size;
        load.weight += plan.shards[i].weight;
    }
    return loads;
}

/* The scale of the bars. */
struct Scale {
    double mean;
    double largest;
};

Scale scale_of(const Plan& plan, const std::vector<Load>& before, const std::vector<Load>& after)
{
    /* The mean is that of the planner: of the servers that are kept, with the shards of the drained
     * ones. servers_of() has made sure that one is kept. The scale holds both states, so that the
     * bars can be compared. */
    double total = 0;
    double kept = 0;
    double largest = 0;
    for (std::size_t i = 0; i < plan.servers.size(); i++) {
        total += before[i].weight;
        kept += plan.servers[i].is_drained ? 0 : 1;
        largest = std::max({largest, before[i].weight, after[i].weight});
    }
    return {total / kept, largest};
}

/* ######|## : the | is the mean. */
std::string bar_of(double weight, const Scale& scale)
{
    constexpr double kWidth = 40;
    if (scale.largest <= 0)
        return "";
    const auto place = [&](double of) {
        return static_cast<std::size_t>(std::lround(of / scale.largest * kWidth));
    };
    std::string bar(place(weight), '#');
    bar.resize(std::max(bar.size(), place(scale.mean) + 1), ' ');
    bar[place(scale.mean)] = '|';
    return bar;
}

void print_servers(const Plan& plan, const PlanOptions& options)
{
    const std::vector<Load> before = loads_of(plan, false);
    const std::vector<Load> after = loads_of(plan, true);
    const Scale scale = scale_of(plan, before, after);
    Table table = {{"server", "", "shards", "empty", "weight", "size", "of mean", ""}, {}};
    const auto add = [&](std::size_t server, const char* when, const Load& load) {
        /* If no shard has a weight, every server is at the mean. */
        const double part = scale.mean > 0 ? 100 * load.weight / scale.mean : 100;
        table.rows.push_back({plan.servers[server].name, when, load.shards, load.empty,
                              text_of(load.weight), pretty_size(load.size),
                              std::to_string(std::lround(part)) + "%", bar_of(load.weight, scale)});
    };
    for (std::size_t i = 0; i < plan.servers.size(); i++) {
        add(i, plan.moves.empty() ? "now" : "before", before[i]);
        if (!plan.moves.empty())
            add(i, "after", after[i]);
    }
    name_weights(table, options);
    print(table, Format::table);
    std::cout << "\n";
}

std::string text_of_seconds(std::int64_t seconds)
{
    constexpr std::int64_t kMinute = 60;
    constexpr std::int64_t kHour = 3600;
    return seconds < 2 * kMinute ? std::to_string(seconds) + " s"
           : seconds < 2 * kHour ? std::to_string(seconds / kMinute) + " min"
                                 : std::to_string(seconds / kHour) + " h";
}

/* Whether the servers are balanced after all moves. The planner decides, so that this line and the
 * plan follow one rule. */
bool ends_balanced(const Plan& plan)
{
    std::vector<PlannedShard> shards = plan.shards;
    for (const PlannedMove& move : plan.moves)
        shards[move.shard].server = move.to;
    return is_balanced(plan.servers, shards, plan.limits);
}

/* A plan may end by itself with just as many moves. Without the limit it begins with the same. */
bool ends_at_limit(const Plan& plan, const PlanOptions& options)
{
    PlanLimits without_end = plan.limits;
    without_end.max_moves = PlanLimits().max_moves;
    return plan.moves.size() == options.max_moves &&
           plan_moves(plan.servers, plan.shards, without_end).size() > plan.moves.size();
}

void print_summary(const Plan& plan, const PlanOptions& options)
{
    const bool is_enough = ends_balanced(plan);
    /* Nothing to move, and perhaps not within the threshold: large shards, --exclude and moves
     * under way can prevent that. */
    if (plan.moves.empty()) {
        std::cout << "balanced"
                  << (is_enough ? ": every server is within the threshold of the mean\n"
                                : " as well as possible: of the shards that may move, none would "
                                  "gain half of its weight\n");
        return;
    }
    std::int64_t size = 0;
    for (const PlannedMove& move : plan.moves)
        size += plan.distribution.shards[move.shard].size;
    const double seconds = std::ceil(static_cast<double>(size) / static_cast<double>(options.rate));
    std::cout << count_of(plan.moves.size(), "move") << ", " << pretty_size(size) << ": "
              << text_of_seconds(std::llround(seconds)) << " at "
              << pretty_size(static_cast<std::int64_t>(options.rate))
              << " per second, one after the other\n";
    if (!is_enough)
        std::cout << (ends_at_limit(plan, options)
                          ? "--max-moves ends the plan before all servers are balanced\n"
                          : "no further move of a shard would gain half of its weight\n");
}

} // namespace

void print_text(const Plan& plan, const PlanOptions& options)
{
    if (!plan.moves.empty())
        print_moves(plan, options);
    print_servers(plan, options);
    print_summary(plan, options);
}

void print_json(const Plan& plan)
{
    const std::vector<PlacedServer>& servers = plan.distribution.servers;
    Table table = {{"shard", "schema", "from", "to", "size"}, {}};
    for (const PlannedMove& move : plan.moves) {
        const PlacedShard& shard = plan.distribution.shards[move.shard];
        /* Connection strings in place of the names of the table, because move connects with
         * them. */
        table.rows.push_back(
            {shard.number, shard.schema, servers[move.from].dsn, servers[move.to].dsn, shard.size});
    }
    print(table, Format::json);
}
