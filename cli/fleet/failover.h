/* Changes that a server which follows another one can lack after a failover to its standby. */

#pragma once

#include <string>

#include "postgres/connection.h"
#include "postgres/obstacles.h"

/* The server has synchronous_standby_names, and the worker of the subscription does not wait for
 * that standby: it confirms changes that the standby may lack. */
Obstacles find_unsynchronized(Connection& follower, const std::string& subscription);

/* The timeline of the server is the comment of the record of a move. It is another one when a
 * standby was promoted, or the server was recovered from an archive. Noted in the transaction that
 * makes the server follow, and when all rows were compared. */
void note_timeline(Connection& follower, const std::string& record);
/* The timeline is not the noted one. false if none was noted, as by version 1.1, and on a
 * standby. */
bool was_promoted(Connection& follower, const std::string& record);
/* The same for verify: the hint notes the timeline, and goes on after "verify --rows compares
 * them". */
Obstacles find_promoted(Connection& follower, const std::string& record);

inline const char* const kMayLack =
    "was promoted since it began to follow, and may lack changes that are not sent again";
