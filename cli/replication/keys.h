/* Foreign keys of shards, beside logical replication: an apply worker fires no ordinary trigger,
 * and so does not check its rows. Within a set the rows are those that the other server has
 * checked. A key leaves the set if it refers to a table of another schema, whose rows are not
 * replicated with it. */

#pragma once

#include <set>
#include <string>

#include "base/clock.h"
#include "base/shards.h"
#include "postgres/obstacles.h"

/* Keys that could not be looked at, of several servers and sets: a warning tells of them once. */
class UncheckedKeys
{
public:
    UncheckedKeys() = default;
    UncheckedKeys(const UncheckedKeys&) = delete;
    UncheckedKeys& operator=(const UncheckedKeys&) = delete;
    ~UncheckedKeys();

    void add_late(const std::string& table, const std::string& key);
    /* reason: why the owner of the table cannot read the rows. */
    void add_unread(const std::string& schema, const std::string& table, const std::string& key,
                    const std::string& reason);

private:
    std::set<std::string> late_;
    std::set<std::string> unread_;
    std::set<std::string> schemas_; /* of these */
    std::string first_;             /* of these, as text */
};

/* Rows that violate a key: made with triggers off, for example. ADD CONSTRAINT would refuse the
 * key. One obstacle for each such key, of those that leave the set alone if that is asked. Reads
 * the tables with the rights of their owners, for half a minute at most. */
Obstacles find_broken_references(Connection& connection, const Shards& shards,
                                 UncheckedKeys& unchecked, bool only_leaving = false);

/* Rows that a table of another schema lacks on the target, and to which rows of the source refer.
 * One obstacle for each such key. For half a minute at most, too. */
Obstacles find_missing_references(Connection& source, Connection& target, const Shards& shards,
                                  UncheckedKeys& unchecked);

/* Lets the keys that leave the set check replicated rows, too: a row that would violate one is an
 * error of the apply worker, which tries again. In a transaction of the caller. */
void check_replicated_rows(Connection& follower, const Shards& shards);
/* The opposite, when no worker writes any more. A lock for each table, in a transaction of its own;
 * Late at the deadline. */
void end_check_of_replicated_rows(Connection& follower, const Shards& shards,
                                  Clock::time_point deadline);
