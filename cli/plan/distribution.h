/* The servers with their shards and sizes, for plan. */

#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/shards.h"
#include "plan/load.h"
#include "postgres/servers.h"

struct PlacedServer {
    std::string name; /* host:port/database */
    std::string dsn;  /* leads there, without passwords */
};

struct PlacedShard {
    int number;
    std::string schema;
    std::size_t server; /* its place in the list of servers */
    std::int64_t size;
    std::int64_t rows; /* estimate of the last ANALYZE, 0 before the first */
    std::int64_t load; /* of the sample; 0 without one */
};

/* A shard may be both in shards and in moving or kept, and a number may be in shards twice, if it
 * is open on two servers: the caller decides whether that is an error. */
struct Distribution {
    std::vector<PlacedServer> servers;
    std::vector<PlacedShard> shards; /* by number */
    ShardSet moving;                 /* a move has begun on one of the servers */
    ShardSet kept;                   /* another server keeps old rows until --complete */
};

/* The servers in the order of the set. Servers that fail are not in it, if the set keeps going.
 * Takes as long as the sample. */
Distribution read_distribution(ServerSet& servers, const Sample& sample = {});
