#include "fleet/in_transit.h"

#include "base/quoting.h"

namespace
{

using Kind = InTransit::Kind;
using State = InTransit::State;

InTransit in_transit(const MoveState& move, const Address& here)
{
    const bool is_way_back = move.is_standing_way_back();
    /* A way back is named as the move whose end it is. --undo and --drop-source take the servers in
     * that order. */
    const bool is_from = move.is_of_source() != is_way_back;
    return {{move.shard, move.schema},
            Kind::move,
            is_way_back                ? State::way_back
            : move.step == Step::moved ? State::rest
                                       : State::moving,
            move.is_open(),
            move.is_of_source(),
            move.step == Step::ready,
            move.other,
            is_from ? here : move.other,
            is_from ? move.other : here,
            move.id,
            text_of(move.step)};
}

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
            Kind::split,
            shard.leaves && split.is_under_way() && split.is_home ? State::moving : State::rest,
            is_open(split, shard),
            !split.is_new,
            false,
            split.is_new ? split.old_server : split.new_server,
            split.old_server,
            split.new_server,
            split.id,
            text_of(split.step)};
}

std::string servers_of(const Address& from, const char* to_option, const Address& to)
{
    return "--from " + shell_quoted(from.uri()) + to_option + shell_quoted(to.uri()) + " ";
}

} // namespace

std::vector<InTransit> read_in_transit(Connection& connection)
{
    std::vector<InTransit> found;
    for (const MoveState& move : read_moves(connection))
        found.push_back(in_transit(move, connection.address()));
    if (const auto split = read_split(connection))
        for (const SplitShard& shard : read_split_shards(connection))
            found.push_back(in_transit(*split, shard));
    return found;
}

std::string move_command(const std::string& schema, const std::string& options)
{
    /* Quotes do not keep the command from taking the name for an option. */
    const bool is_like_option = !schema.empty() && schema[0] == '-';
    const std::string command = "snowflake-shard move ";
    return is_like_option ? command + options + " -- " + shell_quoted(schema)
                          : command + shell_quoted(schema) + " " + options;
}

std::string command_of(const InTransit& shard, const std::string& option)
{
    return shard.kind == Kind::move
               ? move_command(shard.shard.schema,
                              servers_of(shard.from, " --to ", shard.to) + option)
               : "snowflake-shard split " + servers_of(shard.from, " --standby ", shard.to) +
                     option;
}

std::string command_of(const SplitState& split, const std::string& option)
{
    return "snowflake-shard split " +
           servers_of(split.old_server, " --standby ", split.new_server) + option;
}

std::string way_on(const InTransit& shard)
{
    const bool is_move = shard.kind == Kind::move;
    switch (shard.state) {
    case State::moving:
        return command_of(shard, "--resume") + " goes on with the " + (is_move ? "move" : "split") +
               ", and --abort undoes it.";
    case State::way_back:
        return command_of(shard, "--drop-source") + " stops reverse replication.";
    case State::rest:
        break;
    }
    return is_move ? command_of(shard, "--drop-source") + " drops the closed copy."
                   : command_of(shard, "--drop-rest") + " drops closed rows and the triggers.";
}

std::string describe(const InTransit& shard)
{
    const bool is_move = shard.kind == Kind::move;
    return shard.shard.title() +
           (shard.state == State::way_back ? ", has a way back"
            : shard.state == State::moving
                ? is_move ? ", is moving" : ", is moving: its server is being split"
            : is_move ? ", has moved to " + visible(shard.other.text())
                      : ", is of a split that still has its triggers and old rows") +
           "\nHINT:  " + way_on(shard);
}

void require_unmoved(ServerSet& servers, const ShardSet& shards)
{
    /* At rest, the old rows only wait to be dropped. A way back counts, because its worker fails at
     * a column that one side lacks. Both servers know of a move. */
    std::set<std::pair<std::string, int>> seen;
    std::string moving;
    for (const auto& of_server : servers.on_all(read_in_transit))
        for (const InTransit& one : of_server)
            if (one.state != State::rest && shards.count(one.shard.number) > 0 &&
                seen.insert({one.id, one.shard.number}).second)
                moving += describe(one) + "\n";
    if (!moving.empty())
        throw Failure(moving + "Nothing was done.");
}
