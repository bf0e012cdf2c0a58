/* Shards that are moving, for the commands that are no move. */

#pragma once

#include "postgres/catalog.h"
#include "move/state.h"
#include "postgres/servers.h"

/* host:port/database as a connection string. */
std::string uri_of(const std::string& server);

/* The command of a move that this server knows: snowflake-shard move insta5 --from ... --to ... */
std::string command_of(const MoveState& move, const std::string& server);

/* An error if one of these shards is in a move: a definition that changes meanwhile would be that
 * of one server alone. */
void require_unmoved(ServerSet& servers, const ShardSet& shards);
