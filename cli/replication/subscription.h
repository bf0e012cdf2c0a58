/* The subscription of a follower: made, ended, and whether its workers run and fail. */

#pragma once

#include <cstdint>
#include <string>

#include "base/clock.h"
#include "postgres/connection.h"
#include "postgres/obstacles.h"

/* A condition on pg_subscription, which has the subscriptions of all databases. */
inline const std::string kOfDatabase =
    "subdbid = (SELECT oid FROM pg_database WHERE datname = current_database())";

/* The connection string of a server for a subscription: as given, else as this command reaches it,
 * as secure (security_of()), and with the password that libpq has used (also of PGPASSWORD or
 * ~/.pgpass, which the other server does not have). */
std::string dsn_of(const Connection& server, const std::string& given = "");

/* CREATE SUBSCRIPTION, without a slot of its own: it may run in a transaction block, so that it is
 * made in one commit with other things, and a trial can roll it back. options: slot_name = ..., and
 * others. With synchronous_standby_names on the subscriber it waits for the standby. Failure if the
 * subscriber lacks its sslcrl. */
std::string subscription_sql(Connection& subscriber, const std::string& name,
                             const std::string& publication, const std::string& dsn,
                             const std::string& options);

/* An option for subscription_sql(), after other options: from 17 on the slot survives a failover of
 * the publisher, if its standby has sync_replication_slots. */
std::string failover_option(const Connection& subscriber, const Connection& publisher);

/* The statements that drop a subscription, and not its slot: with the slot's name, DROP
 * SUBSCRIPTION would connect to a server that its owner has chosen, and is not allowed in a
 * transaction block. Only a disabled one can lose that name. name: as SQL writes it, or %1$I for
 * format(). */
std::string removal_of(const std::string& name);
/* Runs them, also if they have to wait for a lock. Before its slot is dropped, to which the worker
 * would connect again. */
void drop_subscription(Connection& subscriber, const std::string& name, Clock::time_point deadline);

/* The roles that own tables and other objects, and one of the objects of each, as arrays of SQL. */
struct Owners {
    std::string names;
    std::string objects;
};

/* Each right that a subscription of this role to objects of these owners lacks, with the statement
 * that grants it; nothing for a superuser. dsn: the publisher as the subscriber's server reaches
 * it. */
Obstacles find_missing_rights(Connection& subscriber, const Owners& owners, const std::string& dsn);
/* The right to call begin_at(). By default only superusers have it. */
Obstacles find_missing_advance(Connection& subscriber);

/* The process of its apply worker; empty if none runs. */
std::string find_worker(Connection& subscriber, const std::string& name);
/* How often its workers have failed, since its statistics were made. */
std::int64_t count_failures(Connection& subscriber, const std::string& name);

/* It begins at a position of the publisher, though its slot is at an earlier one. The slot can
 * return to its old position in a crash; the replication origin is WAL-logged. Before it is
 * enabled. */
void begin_at(Connection& subscriber, const std::string& name, const std::string& position);
