#include "verbs/copies.h"

#include <map>

#include "base/output.h"
#include "fleet/in_transit.h"
#include "replication/comparison.h"
#include "replication/keys.h"
#include "replication/publication.h"
#include "replication/slot.h"

namespace
{

/* The facts that a server has of a move. */
struct Side {
    std::size_t server;
    InTransit move;
};

using Sides = std::map<std::string, Side>; /* by the ID of the move and the number of the shard */

/* The publishers and the followers of all moves. Of reverse replication the server with the shard
 * is the publisher: it is recorded as a move with its sides exchanged. */
std::pair<Sides, Sides> read_sides(ServerSet& servers)
{
    const auto in_transit = servers.on_all(read_in_transit);
    std::pair<Sides, Sides> sides;
    for (std::size_t i = 0; i < in_transit.size(); i++)
        for (const InTransit& one : in_transit[i])
            if (one.kind == InTransit::Kind::move)
                (one.is_source ? sides.first : sides.second)
                    .insert({one.id + " " + std::to_string(one.shard.number), {i, one}});
    return sides;
}

std::string hint(const InTransit& move)
{
    /* The publisher has the rows of clients in both cases. Reverse replication can only be ended;
     * before the cutover the copy can be made again. */
    if (move.motion() == Motion::reverse)
        return "--undo would open these rows. " + command_of(move, "--complete") +
               " stops reverse replication, and drops them.";
    return command_of(move, "--abort") + " removes the copy. Then start the move anew.";
}

void compare(ServerSet& servers, const Side& publisher, const Side& follower,
             std::vector<CopyFinding>& findings)
{
    Connection& publishing = servers[publisher.server].connection;
    Connection& copy = servers[follower.server].connection;
    const InTransit& move = publisher.move;
    const Shard shard = {move.shard.number, move.shard.schema,
                         publishing.identifier(move.shard.schema)};
    const std::string slot = name_slot(publishing, move.record);
    const FollowerRows found =
        compare_with_follower(publishing, copy, tables_of(publishing, {shard}), slot);
    for (const std::string& difference : found.differences)
        findings.push_back(
            {copy.address().text(), {"rows", "schema " + shard.schema, difference, hint(move)}});
    for (const std::string& unknown : found.unknown)
        warn(visible(unknown));
    for (Connection* const server : {&publishing, &copy})
        for (const Obstacle& broken : find_broken_references(*server, {shard}, true))
            findings.push_back({server->address().text(),
                                {"key", "schema " + shard.schema, broken.problem, broken.hint}});
}

} // namespace

std::vector<CopyFinding> compare_copies(ServerSet& servers)
{
    const auto [publishers, followers] = read_sides(servers);
    std::vector<CopyFinding> findings;
    for (const auto& [id, publisher] : publishers) {
        const InTransit& move = publisher.move;
        /* Nothing follows any more, so the two sides differ by the writes of clients since the
         * cutover. */
        if (move.motion() == Motion::rest)
            continue;
        const Prefix prefix("shard " + std::to_string(move.shard.number) + ": ");
        const auto follower = followers.find(id);
        if (follower == followers.end())
            warn("rows are not compared: give verify server " + visible(move.other.text()) +
                 ", too");
        /* Before this step rows are still being copied, and after it the target is open and takes
         * writes of its own. */
        else if (follower->second.move.step != text_of(Step::ready))
            warn("rows are not compared: the copy is at step " + follower->second.move.step);
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
