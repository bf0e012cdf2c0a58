#include "move/moving.h"

#include "split/state.h"

/* A host is the folder of a socket, too. libpq takes it in a URI with %2F for each slash. The
 * database is behind the last slash. */
std::string uri_of(const std::string& server)
{
    const std::size_t host_end = server.rfind('/');
    std::string uri = "postgresql://";
    for (const char c : server.substr(0, host_end))
        uri += c == '/' ? "%2F" : std::string(1, c);
    return uri + server.substr(host_end);
}

std::string command_of(const MoveState& move, const std::string& server)
{
    /* A way back is named as the move whose end it is. --undo and --drop-source take the
     * servers in that order. */
    const bool is_from = move.is_of_source() != move.is_standing_way_back();
    const std::string& from = is_from ? server : move.other;
    const std::string& to = is_from ? move.other : server;
    return "snowflake-shard move " + move.schema + " --from " + uri_of(from) + " --to " +
           uri_of(to);
}

void require_unmoved(ServerSet& servers, const ShardSet& shards)
{
    const auto moves = servers.on_all(read_moves);
    std::set<std::string> seen; /* both servers of a move know it */
    std::string moving;
    for (std::size_t i = 0; i < moves.size(); i++)
        for (const MoveState& move : moves[i])
            /* At moved, the old rows only wait for --drop-source. A way back counts, because its
             * worker fails at a column that one side lacks. */
            if (move.step != Step::moved && shards.count(move.shard) > 0 &&
                seen.insert(move.id).second)
                moving += "shard " + std::to_string(move.shard) + ", schema " + move.schema +
                          (move.is_standing_way_back() ? ", has a way back" : ", is moving") +
                          "\nHINT:  " + command_of(move, servers[i].name()) +
                          (move.is_standing_way_back()
                               ? " --drop-source ends the way back.\n"
                               : " --resume goes on with the move, and --abort undoes it.\n");
    for (const auto& in_split : servers.on_all(read_shards_in_split))
        for (const ShardInSplit& one : in_split)
            if (one.is_moving && shards.count(one.shard.number) > 0) {
                moving += "shard " + std::to_string(one.shard.number) + ", schema " +
                          one.shard.schema + ", is moving: its server is being split\n";
                break;
            }
    if (!moving.empty())
        throw Failure(moving + "Nothing was done.");
}
