#include "base/shard_states.h"

#include <algorithm>
#include <iostream>
#include <map>

#include "base/failure.h"
#include "base/output.h"
#include "base/table.h"

int exit_code_of(const std::vector<ShardState>& states)
{
    const bool is_done = std::all_of(states.begin(), states.end(), [](const ShardState& state) {
        return state.state != "failed" && state.state != "not done";
    });
    return is_done ? kDone : kFailed;
}

int print_states(const std::vector<ShardState>& states, bool json)
{
    Table table = {{"shard", "schema", "state", "error"}, {}};
    std::map<std::string, ShardSet> shards;
    for (const auto& [shard, state, error, server, sqlstate] : states) {
        shards[state].insert(shard.number);
        table.rows.push_back({shard.number, shard.schema, state, text_or_null(error)});
        if (!error.empty())
            warn(shard.title() + ": " + error);
    }
    /* Ranges, because a run over thousands of shards must end in a few lines. */
    if (json)
        print(table, Format::json);
    else
        for (const auto& [state, set] : shards)
            std::cout << count_of(set.size(), "shard") << " " << state << ": " << format_shards(set)
                      << "\n";
    return exit_code_of(states);
}
