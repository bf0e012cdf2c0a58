#include "fleet/in_transit.h"

#include <map>

#include "base/quoting.h"

namespace
{

using Kind = InTransit::Kind;
using State = InTransit::State;

/* A promoted standby has the state of the old server until it is opened, and lacks its slot: all
 * shards are closed there. So each shard is shown once. */
bool is_open(const SplitState& split, const SplitShard& shard)
{
    if (split.step == SplitStep::prepared)
        return true;
    if (split.step == SplitStep::split)
        return shard.leaves == split.is_new;
    return !shard.leaves && split.is_home;
}

/* On a promoted standby that is not open yet no shard is moving: the old server shows it. */
InTransit in_transit(const SplitState& split, const SplitShard& shard)
{
    return {static_cast<const Shard&>(shard),
            kSplitSchema,
            {},
            Kind::split,
            shard.leaves && split.is_under_way() && split.is_home ? State::moving : State::rest,
            is_open(split, shard),
            !split.is_new,
            false,
            split.is_new ? split.old_server : split.new_server,
            split.old_server.uri(),
            split.new_server.uri(),
            split.id,
            text_of(split.step)};
}

std::string split_command(const std::string& from, const std::string& standby,
                          const std::string& option)
{
    return "snowflake-shard split --from " + shell_quoted(from) + " --standby " +
           shell_quoted(standby) + " " + option;
}

/* By the record of the target. That of the source does not tell it. */
bool is_target_open(const InTransit& shard)
{
    return shard.kind == Kind::move && shard.is_open && !shard.is_source;
}

} // namespace

InTransit in_transit(const MoveState& move, const std::string& here, const std::string& other)
{
    const bool is_reverse = move.is_standing_reverse();
    /* Reverse replication is named as the move whose end it is. --undo and --complete take the
     * servers in that order. */
    const bool is_from = move.is_of_source() != is_reverse;
    return {move.shards.front(),
            move.name,
            move.shards,
            Kind::move,
            is_reverse                 ? State::reverse
            : move.step == Step::moved ? State::rest
                                       : State::moving,
            move.is_open(),
            move.is_of_source(),
            move.step == Step::ready,
            move.other,
            is_from ? here : other,
            is_from ? other : here,
            move.id,
            text_of(move.step)};
}

std::vector<InTransit> read_in_transit(Connection& connection)
{
    std::vector<InTransit> found;
    for (const MoveState& move : read_moves(connection)) {
        InTransit one = in_transit(move, connection.address().uri(), move.other.uri());
        for (const Shard& shard : move.shards) {
            one.shard = shard;
            found.push_back(one);
        }
    }
    if (const auto split = read_split(connection))
        for (const SplitShard& shard : read_split_shards(connection))
            found.push_back(in_transit(*split, shard));
    return found;
}

std::string move_command(const Shards& set, const std::string& from, const std::string& to,
                         const std::string& options)
{
    const std::string rest = "--from " + shell_quoted(from) + " --to " + shell_quoted(to) +
                             (options.empty() ? "" : " " + options);
    if (set.size() > 1)
        return "snowflake-shard move --shards " + format_shards(numbers_of(set)) + " " + rest;
    const std::string& schema = set.front().schema;
    /* Quotes do not keep the command from taking the name for an option. */
    const bool is_like_option = !schema.empty() && schema[0] == '-';
    return "snowflake-shard move " + (is_like_option ? rest + " -- " + shell_quoted(schema)
                                                     : shell_quoted(schema) + " " + rest);
}

std::string command_of(const InTransit& shard, const std::string& option)
{
    return shard.kind == Kind::move ? move_command(shard.set, shard.from, shard.to, option)
                                    : split_command(shard.from, shard.to, option);
}

std::string command_of(const SplitState& split, const std::string& option)
{
    return split_command(split.old_server.uri(), split.new_server.uri(), option);
}

std::string state_of(const InTransit& shard)
{
    switch (shard.state) {
    case State::reverse:
        return shard.is_open ? "open with reverse replication" : "moved, follows";
    case State::moving:
        return shard.kind == Kind::move && !shard.is_open && shard.is_source ? "closed" : "moving";
    case State::rest:
        break;
    }
    return shard.is_open ? "open" : "moved";
}

std::string next_command(const InTransit& shard)
{
    return command_of(shard, shard.state == State::moving ? "--resume" : "--complete");
}

std::string next_commands(const InTransit& shard)
{
    const std::string next = next_command(shard);
    const std::string what = shard.kind == Kind::move ? "move" : "split";
    switch (shard.state) {
    case State::moving:
        return next + " goes on with the " + what + "." +
               (is_target_open(shard)
                    ? ""
                    : " " + command_of(shard, "--abort") + " undoes the " + what + ".");
    case State::reverse:
        return next + " stops reverse replication. " + command_of(shard, "--undo") +
               (shard.set.size() > 1 ? " moves the shards back." : " moves the shard back.");
    case State::rest:
        break;
    }
    return next + (shard.kind == Kind::move ? " drops the closed copy."
                                            : " drops closed rows and the triggers.");
}

std::string next_commands(const SplitState& split)
{
    return split.is_under_way()
               ? command_of(split, "--resume") + " goes on with the split. " +
                     command_of(split, "--abort") + " undoes the split."
               : command_of(split, "--complete") + " drops closed rows and the triggers.";
}

std::string describe(const InTransit& shard)
{
    const bool is_one = shard.set.size() <= 1;
    const std::string has = is_one ? ", has " : " have ";
    const std::string is = is_one ? ", is " : " are ";
    std::string text;
    if (shard.kind == Kind::split)
        text = shard.shard.title() +
               (shard.state == State::moving
                    ? ", is moving: its server is being split"
                    : ", is of a split that still has its triggers and old rows");
    else
        text = title_of(shard.set) + (shard.state == State::reverse ? has + "reverse replication"
                                      : shard.state == State::moving
                                          ? is + "moving"
                                          : has + "moved to " + visible(shard.other.text()));
    return text + "\nHINT:  " + next_commands(shard);
}

void require_unmoved(ServerSet& servers, const ShardSet& shards)
{
    /* At rest, the old rows only wait to be dropped. Reverse replication counts, because its worker
     * fails at a column that one side lacks. Both servers know of a move. */
    std::map<std::pair<int, std::string>, InTransit> found;
    for (const auto& of_server : servers.on_all(read_in_transit))
        for (const InTransit& one : of_server)
            if (one.state != State::rest && shards.count(one.shard.number) > 0) {
                const int number = one.set.empty() ? one.shard.number : one.set.front().number;
                const auto place = found.insert({{number, one.id}, one}).first;
                if (is_target_open(one))
                    place->second = one;
            }
    std::string moving;
    for (const auto& [key, one] : found)
        moving += describe(one) + "\n";
    if (!moving.empty())
        throw Failure(moving + "Nothing was done.");
}
