/* Statements that give a shard's copy its own number. */

#pragma once

#include <string>

#include "base/shards.h"
#include "postgres/connection.h"

/* Statements that give the copy another number and another name, with marks in place of both. They
 * are made from the catalogue, object by object: DEFAULTs, domains, functions with an SQL body,
 * CHECK constraints with the copy's number; settings of functions such as SET search_path = insta5
 * with named in them, the schema that the copy was made from. A number in any other object stays,
 * for example in a view, an index, a policy or a generated column: compare_copy() finds that, and
 * clone refuses the template. The statements run in a transaction of the caller. Failure if a name
 * or an expression has a mark of its own. */
std::string renumbering_of(Connection& connection, const Shard& copy, const Shard& named);
