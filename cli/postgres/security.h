/* The parameters of libpq that secure a connection, for a server that makes the same connection. */

#pragma once

#include <string>

#include "postgres/connection.h"
#include "postgres/obstacles.h"

/* The settings of this connection that secure it, from its string, the environment or a service
 * file, as a connection string. Files are named by the paths on this machine; default files are
 * left to the reader. */
std::string security_of(const Connection& connection);

/* libpq does not complain about a missing sslcrl, and then takes revoked certificates. */
Obstacles find_missing_crl(Connection& subscriber, const std::string& dsn);

/* The hint if this server cannot connect by the string. */
std::string how_to_connect(const std::string& dsn);
