/* A definition is made in sessions of the owners of its schemas, so PostgreSQL decides by their
 * rights. A session sees the objects of another one after its COMMIT. */

#pragma once

#include <chrono>
#include <string>
#include <vector>

#include "postgres/connection.h"
#include "postgres/dump.h"

/* Items one after the other that one owner makes. */
struct OwnersItems {
    std::string owner;
    std::vector<Archive::Item> items;
};

/* The items in their order, but first the privileges on schemas, which other owners need. Schemas
 * are left out: the command makes them. */
std::vector<OwnersItems> parts_of(std::vector<Archive::Item> items);

/* A transaction of the connection, and in it one of a session of the owner. Limits of time that
 * the role has by ALTER ROLE do not hold. */
void begin_of_owner(Connection& connection, const std::string& owner,
                    std::chrono::milliseconds lock_timeout = std::chrono::milliseconds::zero());
void commit_of_owner(Connection& connection);

/* Each part in a transaction of its own. last: statements before its COMMIT. */
void make_items(Connection& connection, const Archive& archive,
                const std::vector<Archive::Item>& items, const std::string& last = "");

/* The remedy of an error of rights in a session of the owner. */
std::string remedy_of_right(Connection& connection, const std::string& message,
                            const std::string& role);
