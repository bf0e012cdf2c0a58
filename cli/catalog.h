/* The shards of a server, as its catalogue has them, and sets of shard numbers. */

#pragma once

#include <future>
#include <set>
#include <string>
#include <vector>

#include "connection.h"

struct Shard {
    int number;
    std::string schema;
    std::string quoted; /* the schema's name as SQL writes it: "Insta 5" */
};

using ShardSet = std::set<int>;

/* "0-7,9" and back. */
ShardSet parse_shards(const std::string& text);
std::string format_shards(const ShardSet& shards);

/* A pattern with the number in it: insta{} and 5 are insta5. */
std::string schema_name(const std::string& pattern, int shard);

/* The schema of the extension, as SQL writes it; an error if it is not installed. */
std::string extension_schema(Connection& connection);

/* What a move has noted on one of its two servers. */
struct MoveState {
    int shard;
    std::string schema;
    std::string id;
    std::string other; /* the other server */
    std::string step;
    std::string marker;
    bool is_open; /* false: a fence stands there, because the shard has left or has not come yet */
};

std::vector<MoveState> read_moves(Connection& connection);

/* The schemas whose shards are somewhere else, or not here yet. */
std::set<std::string> closed_schemas(Connection& connection);

/* All shards that are open, by number; a number twice if two schemas have it. */
std::vector<Shard> read_shards(Connection& connection);

/* Those of the numbers "0-7,9" that are there, with a warning of the others; all for "". */
std::vector<Shard> choose_shards(Connection& connection, const std::string& numbers);

/* The one shard of a schema. */
Shard find_shard(Connection& connection, const std::string& schema);

/* Calls function(connection, index) for all servers at the same time. The results are in the order
 * of the servers; an error of one of them is raised when all have ended. */
template <typename Function>
auto on_all_servers(const std::vector<std::string>& dsns, Function function)
{
    using Outcome = decltype(function(std::declval<Connection&>(), std::size_t{0}));
    std::vector<std::future<Outcome>> futures;
    for (std::size_t i = 0; i < dsns.size(); i++)
        futures.push_back(std::async(std::launch::async, [&dsns, &function, i] {
            Connection connection(dsns[i]);
            return function(connection, i);
        }));
    for (auto& future : futures)
        future.wait();
    std::vector<Outcome> outcomes;
    for (auto& future : futures)
        outcomes.push_back(future.get());
    return outcomes;
}
