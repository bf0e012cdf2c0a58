#include "move/moving.h"

#include "base/match.h"
#include "base/quoting.h"
#include "split/state.h"

/* A host is the folder of a socket, too, and an IPv6 address has colons. The name of a database may
 * have both characters, so the first port in the text ends the host. */
std::string uri_of(const std::string& server)
{
    const auto port = match(server, ":[0-9]+/");
    if (port.empty())
        return "postgresql://" + uri_encoded(server);
    const std::size_t at = server.find(port[0]);
    const std::string database = server.substr(at + port[0].size());
    return "postgresql://" + uri_encoded(server.substr(0, at)) + port[0] + uri_encoded(database);
}

std::string move_command(const std::string& schema, const std::string& options)
{
    /* Quotes do not keep the command from taking the name for an option. */
    const bool is_like_option = !schema.empty() && schema[0] == '-';
    const std::string command = "snowflake-shard move ";
    return is_like_option ? command + options + " -- " + shell_quoted(schema)
                          : command + shell_quoted(schema) + " " + options;
}

std::string command_of(const MoveState& move, const std::string& server, const std::string& verb)
{
    /* A way back is named as the move whose end it is. --undo and --drop-source take the
     * servers in that order. */
    const bool is_from = move.is_of_source() != move.is_standing_way_back();
    const std::string& from = is_from ? server : move.other;
    const std::string& to = is_from ? move.other : server;
    return move_command(move.schema, "--from " + shell_quoted(uri_of(from)) + " --to " +
                                         shell_quoted(uri_of(to)) + " " + verb);
}

void require_unmoved(ServerSet& servers, const ShardSet& shards)
{
    const auto moves = servers.on_all(read_moves);
    std::set<std::string> seen; /* both servers of a move know it */
    std::string moving;
    for (std::size_t i = 0; i < moves.size(); i++) {
        const std::string address = servers[i].connection.address();
        for (const MoveState& move : moves[i])
            /* At moved, the old rows only wait for --drop-source. A way back counts, because its
             * worker fails at a column that one side lacks. */
            if (move.step != Step::moved && shards.count(move.shard) > 0 &&
                seen.insert(move.id).second)
                moving +=
                    "shard " + std::to_string(move.shard) + ", schema " + visible(move.schema) +
                    (move.is_standing_way_back() ? ", has a way back" : ", is moving") +
                    "\nHINT:  " +
                    (move.is_standing_way_back()
                         ? command_of(move, address, "--drop-source") + " ends the way back.\n"
                         : command_of(move, address, "--resume") +
                               " goes on with the move, and --abort undoes it.\n");
    }
    for (const auto& in_split : servers.on_all(read_shards_in_split))
        for (const ShardInSplit& one : in_split)
            if (one.is_moving && shards.count(one.shard.number) > 0) {
                moving += "shard " + std::to_string(one.shard.number) + ", schema " +
                          visible(one.shard.schema) + ", is moving: its server is being split\n";
                break;
            }
    if (!moving.empty())
        throw Failure(moving + "Nothing was done.");
}
