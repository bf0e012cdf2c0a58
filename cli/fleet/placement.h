/* The shards of all servers, and the choice of shards by their numbers. */

#pragma once

#include <string>
#include <vector>

#include "fleet/catalog.h"
#include "postgres/servers.h"

/* The open shards of each server, in the order of the set. A server that fails leaves the set, and
 * the indexes do not fit any more. */
using ShardsOfServers = std::vector<std::vector<Shard>>;

ShardsOfServers read_shards(ServerSet& servers);

std::vector<Shard> choose_shards(const std::vector<Shard>& shards, const ShardSet& numbers);

/* The shards of the numbers "0-7,9"; all for "". A number that no server has is an error, unless a
 * server was left out. */
ShardsOfServers choose_shards(ServerSet& servers, const ShardsOfServers& shards,
                              const std::string& numbers);

/* Numbers that no server has are an error, or a warning if a server was left out. */
void require_none(ServerSet& servers, const ShardSet& missing);

/* The one shard of a schema, and its server as an index of the set. */
struct Template {
    std::size_t server;
    Shard shard;
};

/* Failure if there is none, or if several servers have one. */
Template find_template(ServerSet& servers, const ShardsOfServers& shards,
                       const std::string& schema);
