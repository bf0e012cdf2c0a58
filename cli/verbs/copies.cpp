#include "verbs/copies.h"

#include <map>

#include "base/output.h"
#include "move/follower.h"
#include "move/moving.h"

namespace
{

/* What a server knows of a move. */
struct Side {
    std::size_t server;
    MoveState state;
};

using Sides = std::map<std::string, Side>; /* by the ID of the move */

/* The publishers and the followers of all moves. Of a way back the server with the shard is the
 * publisher: it is recorded as a move with its sides exchanged. */
std::pair<Sides, Sides> read_sides(ServerSet& servers)
{
    const auto moves = servers.on_all(read_moves);
    std::pair<Sides, Sides> sides;
    for (std::size_t i = 0; i < moves.size(); i++)
        for (const MoveState& move : moves[i])
            (move.is_of_source() ? sides.first : sides.second).insert({move.id, {i, move}});
    return sides;
}

std::string hint(const MoveState& move, const std::string& publisher)
{
    /* The publisher has the rows of clients in both cases. A way back can only be ended; before the
     * switch the copy can be made again. */
    if (move.is_standing_way_back())
        return "--undo would open these rows. " + command_of(move, publisher, "--drop-source") +
               " ends the way back, and drops them.";
    return command_of(move, publisher, "--abort") + " removes the copy. Then start the move anew.";
}

void compare(ServerSet& servers, const Side& publisher, const Side& follower,
             std::vector<CopyFinding>& findings)
{
    Connection& publishing = servers[publisher.server].connection;
    Connection& copy = servers[follower.server].connection;
    const MoveState& move = publisher.state;
    const Shard shard = {move.shard, move.schema, publishing.identifier(move.schema)};
    const std::string slot = name_slot(publishing, "snowflake_move_" + std::to_string(move.shard));
    const FollowerRows found = compare_with_follower(publishing, copy, shard, slot);
    for (const std::string& difference : found.differences)
        findings.push_back(
            {copy.address(),
             {"rows", "schema " + move.schema, difference, hint(move, publishing.address())}});
    for (const std::string& unknown : found.unknown)
        warn(visible(unknown));
}

} // namespace

std::vector<CopyFinding> compare_copies(ServerSet& servers)
{
    const auto [publishers, followers] = read_sides(servers);
    std::vector<CopyFinding> findings;
    for (const auto& [id, publisher] : publishers) {
        const MoveState& move = publisher.state;
        /* Nothing follows any more, so the two sides differ by the writes of clients since the
         * switch. */
        if (move.step == Step::moved)
            continue;
        const Prefix prefix("shard " + std::to_string(move.shard) + ": ");
        const auto follower = followers.find(id);
        if (follower == followers.end())
            warn("rows are not compared: give verify server " + visible(move.other) + ", too");
        /* Before this step rows are still being copied, and after it the target is open and takes
         * writes of its own. */
        else if (follower->second.state.step != Step::ready)
            warn("rows are not compared: the copy is at step " +
                 text_of(follower->second.state.step));
        else
            try {
                /* A Failure is of this shard, as a slot that is gone or a copy that does not catch
                 * up, and the others are compared. A ServerError ends verify with exit code 3. */
                compare(servers, publisher, follower->second, findings);
            } catch (const ServerError&) {
                throw;
            } catch (const Failure& error) {
                warn(std::string("rows are not compared: ") + error.what());
            }
    }
    return findings;
}
