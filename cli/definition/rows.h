/* The rows of the catalogue that define shards, to find those whose definitions are equal without a
 * dump of each: a pg_dump reads the catalogue of all shards. */

#pragma once

#include <functional>
#include <string>
#include <vector>

#include "base/shards.h"
#include "postgres/connection.h"

/* For each shard a text, with marks in place of its name and number, and of those of the template
 * in comments and bodies. Two shards with the same text have the same entries of a dump, but for
 * these. Shards that have different texts can have the same. A shard whose definition is changed
 * meanwhile has an empty text. The shards are read over sessions of their own, on the server of the
 * connection. step() is called for each. */
std::vector<std::string> read_rows(const Connection& connection, const Shards& shards,
                                   const Shard& template_shard, const std::function<void()>& step);
