/* Roles and objects of other schemas, which a definition needs on the server where it is made, and
 * does not bring along. */

#pragma once

#include <string>

#include "base/shards.h"
#include "postgres/obstacles.h"

/* The definition finds an object of another schema by its name alone, and the code of that object
 * runs with the rights of those who use the shard, such as an apply worker. So it must have the
 * same owner on the target, and be of the same kind. Superusers count as one owner, and the role
 * that connects counts as a superuser. A schema may belong to these, too. Those who made an
 * extension may differ, because its objects are looked at as others are. Each difference is an
 * obstacle, and each role that is missing. Nothing is locked. */
Obstacles find_needed(Connection& source, Connection& target, const Shards& shards);

/* The same of tables alone; an array of their OIDs. */
Obstacles find_needed_of_tables(Connection& source, Connection& target, const std::string& tables);
