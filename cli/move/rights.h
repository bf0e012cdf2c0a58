/* The rights with which rows are written on the subscribing server. */

#pragma once

#include "base/shards.h"
#include "move/session.h"
#include "postgres/obstacles.h"
#include "replication/subscription.h"

/* The workers of a subscription. */
struct Workers {
    std::string dsn;            /* of the publisher, as the subscriber's server reaches it */
    bool trusts_owners = false; /* they may run code of the owners with the rights of this role */
};

Owners read_owners(Connection& home, const Shards& shards);

/* With whose rights the workers of a subscription write the rows, and so run code in the tables:
 * CHECK constraints, domains, generated columns, indexes, triggers that are ENABLE ALWAYS.
 *
 * From PostgreSQL 16 on a worker can write to each table as its owner, in a security-restricted
 * operation (SwitchToUntrustedUser()). Otherwise it writes as the owner of the subscription, which
 * is the role of the move. An owner can add code to the table on the target at any time of the copy
 * and of reverse replication, so to look at the code does not help: the owners must be trusted.
 * They are if all shards of both servers that are not a superuser's or the mover's belong to one
 * role, or if the operator says so. */

/* None if the workers write as the owners, or if these are trusted. home: the server where the
 * shard is open. The target gets policies and row security after the rows. */
Obstacles find_untrusted_owners(Connection& subscriber, Connection& publisher, Connection& home,
                                const Shards& shards, const Workers& workers);

/* The option of CREATE SUBSCRIPTION; "" if the default is right. A Failure if there is such an
 * obstacle: an owner can force row security after the obstacles were looked for. */
std::string worker_option(Connection& subscriber, Connection& publisher, Connection& home,
                          const Shards& shards, const Workers& workers);

/* Warns of functions of other roles that the workers will run with the rights of this role. */
void tell_of_code(Connection& subscriber, Connection& home, const Shards& shards);
