/* Changes that a server which follows another one can lack: after a failover, a restore or
 * pg_upgrade of either, and by its subscription. */

#pragma once

#include <string>
#include <vector>

#include "base/shards.h"
#include "postgres/connection.h"
#include "postgres/obstacles.h"

/* The server has synchronous_standby_names, and the worker of the subscription does not wait for
 * that standby: it confirms changes that the standby may lack. */
Obstacles find_unsynchronized(Connection& follower, const std::string& subscription);

/* The subscription of the record lacks tables of the set: its worker skips their changes, and
 * confirms them. pg_upgrade before 17 and pg_dump restore a subscription without tables. */
Obstacles find_unsubscribed(Connection& follower, const std::string& record, const Shards& set);

/* Who follows whom, as of the construction. Each server has its own identity as the comment of its
 * record of the move, and the follower that of the sender, too: system identifier and timeline, and
 * of the follower the OID of its subscription, and the transactions that have given it its tables.
 * Another one can lack changes that the slot has passed, or that the follower has already passed.
 * Noted when a server begins to follow, and when all rows were compared. */
class Following
{
public:
    Following(Connection& follower, Connection& sender, const std::string& record);

    /* Says which server is not as noted; empty if both are. Version 1.1 has noted nothing, so it is
     * not known then. */
    std::string change() const;
    /* In a transaction of the caller on the follower, if there is one. */
    void note() const;

private:
    Connection& follower_;
    Connection& sender_;
    const std::string record_;
    const std::string of_follower_;
    const std::string of_sender_;
};

/* Something has shown that the follower lacks changes: the next cutover compares all rows. */
void forget_following(Connection& follower, const std::string& record);

/* The same for verify, which asks one server. The hint notes the identity, and goes on after
 * "verify --rows compares them". Nothing on a standby. */
Obstacles find_other_follower(Connection& follower, const std::string& record);
Obstacles find_other_sender(Connection& sender, const std::string& record);
