/* The standbys that map --replicas names, as one place for each primary. */

#pragma once

#include <map>
#include <string>
#include <vector>

#include "postgres/servers.h"

/* By the text() of the primary's address. Of several standbys the host is a list, host1,host2, from
 * which PgBouncer takes one after the other for new connections: 1.17 and later. */
using Standbys = std::map<std::string, Address>;

/* A Failure if a server is in no recovery, has none of the servers as its primary, or could have
 * two, and if a list would need several ports. */
Standbys find_standbys(ServerSet& servers, const std::vector<std::string>& dsns);
