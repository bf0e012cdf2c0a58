/* The publication of the global tables, and the slots of the followers: on the writer. */

#pragma once

#include <string>

#include "global/change.h"
#include "global/tables.h"

struct Publication {
    bool is_there = false;
    bool is_own = false; /* it belongs to this role or to a superuser */
    Names tables{};
    std::string oids{}; /* of the tables, as an array of SQL */
    PendingChange change{};
    /* The first one: it is another role's, or does not send all rows, columns and changes of named
     * tables. */
    Obstacles problem{};
};

Names published_tables(const Reader& writer);
Publication find_publication(Connection& writer);
/* Failure if it has a problem. */
Publication require_publication(Connection& writer);

/* Makes the publication if it is missing. oids: of the tables, an array of SQL; a Failure, and
 * nothing is published, if a name has led to another table. */
void publish(Connection& writer, const Names& tables, const std::string& oids);
void unpublish(Connection& writer, const Names& tables);
/* Drops the publication if no follower has a slot. */
void drop_unread_publication(Connection& writer);
/* The change is on all followers. */
void forget_change(Connection& writer);

/* The slots of followers in this database, given or not. Any role with REPLICATION can make one of
 * such a name. */
Names slots_of_followers(Connection& writer);

/* Drops the slot of a stopped subscription. Nothing if it is gone, or is none of these slots: a
 * subscription can be altered to name any slot. Failure if another server reads it. */
void drop_slot(Connection& writer, const std::string& slot);
