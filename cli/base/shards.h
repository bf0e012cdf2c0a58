/* Shards, their numbers and names, as the command line and messages have them. */

#pragma once

#include <set>
#include <string>
#include <vector>

struct Shard {
    int number;
    std::string schema;
    std::string quoted{}; /* the schema's name as SQL writes it: "Insta 5" */
    std::string oid{};    /* of the schema, where read_shards() has found it */

    std::string title() const; /* shard 5, schema insta5 */
};

using ShardSet = std::set<int>;
using Shards = std::vector<Shard>;

/* The shard is 13 bits of an ID. */
constexpr int kMaxShard = 8191;

/* "0-7,9" and back. parse_shards() throws UsageError for anything else, also for "" and for a
 * number above 8191. format_shards() writes an empty set as "none". */
ShardSet parse_shards(const std::string& text);
std::string format_shards(const ShardSet& shards);

ShardSet numbers_of(const Shards& shards);
/* "shard 5", "shards 5-7". */
std::string short_title_of(const Shards& shards);
/* The same; of one with its schema, as above. */
std::string title_of(const Shards& shards);
/* The names of the schemas; and quoted as an array of SQL, for $1::regnamespace[]. */
std::vector<std::string> schemas_in(const Shards& shards);
std::string schemas_of(const Shards& shards);
/* Their OIDs, for $1::oid[]. */
std::string oids_of(const Shards& shards);

/* A pattern with the number in it: insta{} and 5 are insta5. UsageError without {}; the length of
 * the name is not checked. */
std::string schema_name(const std::string& pattern, int shard);
