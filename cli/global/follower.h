/* A follower: its subscription, and the trigger that refuses writes to its global tables. */

#pragma once

#include <map>
#include <string>

#include "global/tables.h"

/* The subscription of a database, with the state of each of its tables: r if the rows are there and
 * follow. */
struct Subscription {
    std::string name{};   /* empty: there is none */
    std::string quoted{}; /* the name as SQL writes it */
    std::string slot{};
    bool is_enabled = false;
    std::map<std::string, std::string> tables{};
    std::string oids{};   /* of the tables, as an array of SQL */
    std::string change{}; /* the ID of the last one that global run has made here */
    bool has_all_rows() const
    {
        return std::all_of(tables.begin(), tables.end(),
                           [](const auto& table) { return table.second == "r"; });
    }

    /* The first one: it is another role's, or one of several, or of another publication. */
    Obstacles problem{};
};

Subscription find_subscription(Connection& follower);
/* Failure if it has a problem. */
Subscription require_subscription(Connection& follower);

/* Makes a disabled subscription, without a slot and without tables. Its name is new, and is also
 * the name of its slot. After a split, two servers have the same system identifier, so that is no
 * part of it. dsn: the connection string of the writer, as the server of the follower reaches it.
 */
Subscription make_subscription(Connection& follower, const std::string& dsn);
/* The name of a new subscription, and of its slot. */
std::string new_name(Connection& follower);
/* Disables it, and returns when no worker of it runs. */
void stop_subscription(Connection& follower, const Subscription& subscription);
/* Drops the subscription without its slot. */
void drop_subscription(Connection& follower, const Subscription& subscription);

/* Triggers that raise an error for each statement that writes to one of the tables, with the
 * address of the writer. The workers of the subscription are replicas, for which they do not fire.
 * In a transaction of the caller. */
void refuse_writes(Connection& follower, const Names& tables, const std::string& writer);
/* The tables that have the trigger, whether or not it is enabled. */
Names refusing_tables(Connection& follower);
/* It is as refuse_writes() makes it. */
bool refuses_writes(Connection& follower, const std::string& table);
/* A text for each trigger that is so. A change of the trigger changes the text. */
Names refusing_triggers(Connection& follower);
bool has_trigger(const Reader& follower, const std::string& table, const Names& triggers);
/* Drops the triggers of these tables; the schema with the function goes when no table has it. */
void permit_writes(Connection& follower, const Names& tables);

/* Before PostgreSQL 16 the workers write as the owner of the subscription, and so run code of the
 * tables with its rights: the owner of each table must be a superuser or that role. From 16 on they
 * write as the owner of the table. A table that is missing gets the owner that it has on the
 * writer. */
Obstacles find_untrusted_owners(Connection& writer, Connection& follower, const Names& tables);

/* Rights that this role lacks there, all at once. dsn: of the writer, as the server of the follower
 * reaches it. */
Obstacles find_missing_rights(Connection& writer, Connection& follower, const Names& tables,
                              const std::string& dsn);
