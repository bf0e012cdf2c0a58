#include "fleet/in_transit.h"

#include <algorithm>
#include <functional>
#include <map>

#include "base/quoting.h"

namespace
{

/* A promoted standby has the state of the old server until it is opened, and lacks its slot: all
 * shards are closed there. So each shard is shown once. */
bool is_shown_open(const SplitState& split, const SplitShard& shard)
{
    if (split.step == SplitStep::prepared)
        return true;
    if (split.step == SplitStep::split)
        return shard.leaves == split.is_new;
    return !shard.leaves && split.is_home;
}

/* No shard is moving on a promoted standby that is not open yet: the old server shows it. */
InTransit split_in_transit(const SplitState& split, const SplitShard& shard)
{
    return {static_cast<const Shard&>(shard),
            kSplitSchema,
            {},
            InTransit::Kind::split,
            shard.leaves && split.is_under_way() && split.is_home ? Phase::prepared : Phase::moved,
            is_shown_open(split, shard),
            !split.is_new,
            split.is_new ? split.old_server : split.new_server,
            split.old_server.uri(),
            split.new_server.uri(),
            split.id,
            text_of(split.step),
            ""};
}

std::string split_command(const std::string& from, const std::string& standby,
                          const std::string& option)
{
    return "snowflake-shard split --from " + shell_quoted(from) + " --standby " +
           shell_quoted(standby) + " " + option;
}

} // namespace

InTransit in_transit(const MoveState& move, Phase phase, const std::string& source,
                     const std::string& target)
{
    const bool is_exchanged = row_of(phase).is_exchanged;
    return {move.shards.front(),
            move.name,
            move.shards,
            InTransit::Kind::move,
            phase,
            move.is_open(),
            move.is_of_source(),
            move.other,
            is_exchanged ? target : source,
            is_exchanged ? source : target,
            move.id,
            text_of(move.step),
            phase == Phase::held ? move.compared_at : ""};
}

InTransit in_transit(const MoveState& move, const std::string& here, const std::string& other)
{
    const bool is_source = move.is_of_source();
    return in_transit(move, phase_of(move), is_source ? here : other, is_source ? other : here);
}

namespace
{

/* The names are those of name_slot(). A standby has the record, but not the slot. */
void find_lost(Connection& connection, std::vector<InTransit>& moves)
{
    if (std::none_of(moves.begin(), moves.end(), std::mem_fn(&InTransit::is_followed)) ||
        connection.query("SELECT pg_is_in_recovery()").flag(0, 0))
        return;
    const std::vector<std::string> records = texts_of(connection.query(R"(
        SELECT substring(slot_name, '^(.*)_[0-9]+$') FROM pg_replication_slots
        WHERE database = current_database() AND wal_status IS DISTINCT FROM 'lost')"));
    for (InTransit& move : moves)
        move.is_lost = move.is_followed() &&
                       std::find(records.begin(), records.end(), move.record) == records.end();
}

} // namespace

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
    find_lost(connection, found);
    if (const auto split = read_split(connection))
        for (const SplitShard& shard : read_split_shards(connection))
            found.push_back(split_in_transit(*split, shard));
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
    return shard.kind == InTransit::Kind::move
               ? move_command(shard.set, shard.from, shard.to, option)
               : split_command(shard.from, shard.to, option);
}

std::string command_of(const SplitState& split, const std::string& option)
{
    return split_command(split.old_server.uri(), split.new_server.uri(), option);
}

std::string state_of(const InTransit& shard)
{
    if (shard.is_closed_everywhere)
        return "closed everywhere";
    if (shard.is_lost)
        return shard.phase == Phase::held ? "open, following lost"
                                          : "open, reverse replication lost";
    const StateText& listed = row_of(shard.phase).listed;
    return shard.is_open ? listed.open : listed.closed;
}

namespace
{

InTransit whole_of(const SplitState& split)
{
    InTransit whole = split_in_transit(split, SplitShard());
    whole.phase = split.is_under_way() ? Phase::prepared : Phase::moved;
    return whole;
}

/* A lost slot cannot be made again: the changes since then are gone. */
NextOptions options_of(const InTransit& shard)
{
    if (shard.is_closed_everywhere)
        return {};
    return shard.is_lost ? NextOptions{shard.phase == Phase::held ? "--abort" : "--complete"}
                         : row_of(shard.phase).next;
}

} // namespace

std::string next_command(const InTransit& shard)
{
    const char* const option = options_of(shard)[0];
    return option == nullptr ? "" : command_of(shard, option);
}

std::string next_commands(const InTransit& shard)
{
    const bool is_move = shard.kind == InTransit::Kind::move;
    const std::string what = is_move ? "move" : "split";
    const std::map<std::string, std::string> effects = {
        {"--resume", "goes on with the " + what},
        {"--cutover", "opens the target and closes the source"},
        {"--abort", "undoes the " + what},
        {"--undo", shard.set.size() > 1 ? "moves the shards back" : "moves the shard back"},
        {"--complete", shard.motion() == Motion::reverse
                           ? "stops reverse replication, and drops the old rows for good"
                       : is_move ? "drops the closed copy"
                                 : "drops closed rows and the triggers"}};
    std::string text;
    for (const char* const option : options_of(shard))
        if (option != nullptr)
            text += (text.empty() ? "" : " ") + command_of(shard, option) + " " +
                    effects.at(option) + ".";
    return text;
}

std::string next_command(const SplitState& split)
{
    return next_command(whole_of(split));
}

std::string next_commands(const SplitState& split)
{
    return next_commands(whole_of(split));
}

std::string describe(const InTransit& shard)
{
    const bool is_one = shard.set.size() <= 1;
    const std::string has = is_one ? ", has " : " have ";
    const std::string is = is_one ? ", is " : " are ";
    std::string text;
    if (shard.kind == InTransit::Kind::split)
        text = shard.shard.title() +
               (shard.motion() == Motion::moving
                    ? ", is moving: its server is being split"
                    : ", is of a split that still has its triggers and old rows");
    else
        text = title_of(shard.set) +
               (shard.motion() == Motion::reverse ? has + "reverse replication"
                : shard.motion() == Motion::moving
                    ? is + (shard.phase == Phase::held ? "held before the cutover" : "moving")
                    : has + "moved to " + visible(shard.other.text()));
    return text + "\nHINT:  " + next_commands(shard);
}

void require_unmoved(ServerSet& servers, const ShardSet& shards)
{
    /* Shards at rest are skipped: only their old rows are left, to be dropped. Reverse replication
     * counts, because its worker fails at a column that one side lacks. Both servers know of a
     * move: the target's record says that it is open, and the one that follows says nothing of an
     * undo. */
    std::map<std::pair<int, std::string>, InTransit> found;
    for (const auto& of_server : servers.on_all(read_in_transit))
        for (const InTransit& one : of_server)
            if (one.motion() != Motion::rest && shards.count(one.shard.number) > 0) {
                const int number = one.set.empty() ? one.shard.number : one.set.front().number;
                const auto place = found.insert({{number, one.id}, one}).first;
                if (one.phase == Phase::opened || place->second.motion() == Motion::reverse)
                    place->second = one;
            }
    std::string moving;
    for (const auto& [key, one] : found)
        moving += describe(one) + "\n";
    if (!moving.empty())
        throw Failure(moving + "Nothing was done.");
}
