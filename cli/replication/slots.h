/* The logical replication slots of a publisher. Names of slots are those of a whole cluster. */

#pragma once

#include <chrono>
#include <string>

#include "base/clock.h"
#include "postgres/connection.h"
#include "postgres/obstacles.h"

/* The name has the database in it, because two databases of a cluster can have a slot for the same
 * purpose. */
std::string name_slot(Connection& publisher, const std::string& purpose);

/* It waits for the transactions that are running in the whole cluster, and says so. */
void make_slot(Connection& publisher, const std::string& slot);

/* The same with a snapshot that other sessions of the publisher can take while this lives: the
 * changes that the slot sends are those that the snapshot does not have. Takes one of
 * max_wal_senders, for its connection. */
class SlotWithSnapshot
{
public:
    SlotWithSnapshot(Connection& publisher, const std::string& slot);

    /* The name that SET TRANSACTION SNAPSHOT takes. */
    const std::string& snapshot() const { return snapshot_; }

private:
    Connection maker_;
    std::string snapshot_;
};

/* It is there, of the kind that make_slot() makes, and has lost no WAL. Any role with REPLICATION
 * can have made one of this name that sends other things. */
bool has_slot(Connection& publisher, const std::string& slot);
/* A follower is connected to it. */
bool is_read(Connection& publisher, const std::string& slot);

/* Nothing if it is gone. It can be in use for a moment: the backend of a killed command releases
 * its locks before its slot, and a walsender notices late that its follower is dead. ended: a
 * condition on pg_stat_activity for the processes that are asked to end; empty: none. A ServerError
 * if it is still in use at the deadline; it names the process. */
void drop_slot(Connection& publisher, const std::string& slot, Clock::time_point deadline,
               const std::string& ended);

/* Returns when the follower has everything that is visible on the publisher now; it reads the slot.
 * A Failure if it does not, or does not catch up in this time. */
void await_follower(Connection& publisher, const Connection& follower, const std::string& slot,
                    std::chrono::milliseconds longest);

/* The rights of this role that a slot and a publication take. */
Obstacles find_missing_to_publish(Connection& publisher);
