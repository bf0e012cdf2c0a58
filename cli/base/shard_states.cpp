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
    Table table = {{"shard", "schema", "state", "error", "next"}, {}};
    std::map<std::string, ShardSet> shards;
    for (const ShardState& one : states) {
        shards[one.state].insert(one.shard.number);
        table.rows.push_back({one.shard.number, one.shard.schema, one.state,
                              text_or_null(one.error), text_or_null(one.next)});
        if (!one.error.empty())
            warn(one.shard.title() + ": " + one.error);
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
