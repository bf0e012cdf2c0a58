#include "verbs/copies.h"

#include <map>

#include "base/output.h"
#include "fleet/in_transit.h"
#include "fleet/locked.h"
#include "postgres/unread.h"
#include "replication/comparison.h"
#include "replication/keys.h"
#include "replication/publication.h"
#include "replication/slots.h"

namespace
{

/* The facts that a server has of a move. */
struct Side {
    std::size_t server;
    InTransit move;
};

using Sides = std::map<std::string, Side>; /* by the ID of the move and the number of the shard */

/* The publishers and the followers of all moves. In reverse replication the server with the shard
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

std::string hint_for(const InTransit& move)
{
    /* The publisher has the rows of clients in both cases. Reverse replication can only be ended;
     * before the cutover the copy can be made again. */
    if (move.motion() == Motion::reverse)
        return "--undo would open these rows. " + command_of(move, "--complete") +
               " stops reverse replication, and drops them.";
    return command_of(move, "--abort") + " removes the copy. Then start the move anew.";
}

void compare(ServerSet& servers, const Side& publisher, const Side& follower,
             ComparedCopies& compared)
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
        compared.findings.push_back(
            {copy.address().text(),
             {"rows", "schema " + shard.schema, difference, hint_for(move)}});
    for (const std::string& unknown : found.unknown)
        warn(visible(unknown));
    compared.is_all = compared.is_all && found.unknown.empty();
}

/* The closed rows of a move that is at rest are dropped by --complete. */
void check_keys(ServerSet& servers, ComparedCopies& compared)
{
    UncheckedKeys unchecked;
    for (std::size_t i = 0; i < servers.size(); i++) {
        Connection& server = servers[i].connection;
        for (const InTransit& one : read_in_transit(server)) {
            if (one.kind != InTransit::Kind::move || one.shard.number != one.set.front().number ||
                (one.motion() == Motion::rest && !one.is_open))
                continue;
            Shards set = one.set;
            for (Shard& shard : set)
                shard.quoted = server.identifier(shard.schema);
            try {
                for (const Obstacle& broken : find_broken_references(server, set, unchecked, true))
                    compared.findings.push_back(
                        {server.address().text(),
                         {"key", short_title_of(set), broken.problem, broken.hint}});
            } catch (const ServerError& error) {
                if (!server.is_alive())
                    throw;
                server.rollback();
                compared.is_all = false;
                warn(short_title_of(set) + ": foreign keys are not checked: " + error.what());
            }
        }
    }
}

/* Who has locked the schema on one of the two servers, and else the error. A server that is lost
 * ends verify. */
std::string reason_of(const ServerError& error, ServerSet& servers, const Side& publisher,
                      const Side& follower)
{
    std::string hint;
    for (const std::size_t i : {publisher.server, follower.server}) {
        Connection& server = servers[i].connection;
        if (!server.is_alive())
            throw error;
        server.rollback();
        const Result schema =
            server.query("SELECT n.oid, array_agg(c.oid) FROM pg_namespace AS n "
                         "JOIN pg_class AS c ON relnamespace = n.oid AND relkind IN ('r', 'p') "
                         "WHERE nspname = $1 GROUP BY n.oid",
                         {publisher.move.shard.schema});
        if (schema.rows() == 0)
            continue;
        Locked locked = find_locked(server);
        if (error.sqlstate == kLockTimeout && locked.count(schema.text(0, 0)) > 0)
            return server.server() + " has it " + locked[schema.text(0, 0)];
        if (error.sqlstate == kInsufficientPrivilege && hint.empty())
            hint = hint_for_unread(server, schema.text(0, 1));
    }
    return error.sqlstate == kLockTimeout ? "it was locked" : error.what() + hint;
}

} // namespace

ComparedCopies compare_copies(ServerSet& servers)
{
    const auto [publishers, followers] = read_sides(servers);
    ComparedCopies compared;
    check_keys(servers, compared);
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
                /* An error is of this shard, as a slot that is gone, a copy that does not catch up,
                 * or a table that the role may not read. The others are compared. */
                compare(servers, publisher, follower->second, compared);
            } catch (const ServerError& error) {
                compared.is_all = false;
                warn("rows are not compared: " +
                     reason_of(error, servers, publisher, follower->second));
            } catch (const Failure& error) {
                warn(std::string("rows are not compared: ") + error.what());
            }
    }
    return compared;
}
