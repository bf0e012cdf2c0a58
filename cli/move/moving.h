/* Shards that are moving, for the commands that are no move. */

#pragma once

#include "move/state.h"
#include "postgres/catalog.h"
#include "postgres/servers.h"

/* host:port/database as a connection string: the address() of a Connection. */
std::string uri_of(const std::string& server);

/* snowflake-shard move insta5 OPTIONS, for a shell. */
std::string move_command(const std::string& schema, const std::string& options);

/* The command of a move that the server of this address() knows: snowflake-shard move insta5 --from
 * ... --to ... --resume */
std::string command_of(const MoveState& move, const std::string& server, const std::string& verb);

/* An error if one of these shards is in a move: a definition that changes meanwhile would be that
 * of one server alone. */
void require_unmoved(ServerSet& servers, const ShardSet& shards);
