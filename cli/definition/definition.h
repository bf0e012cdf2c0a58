/* The definition of a template, and the differences of other shards. */

#pragma once

#include <functional>
#include <map>
#include <string>
#include <vector>

#include "base/output.h"
#include "base/shards.h"
#include "definition/entries.h"
#include "postgres/connection.h"
#include "postgres/dump.h"

/* An object that only one of the two has. One that is changed is two: missing, and added. */
struct Difference {
    bool is_missing; /* the template has it and the shard has not; false: the other way round */
    std::string object;
    std::string sql;
};

/* Never without a difference. */
struct DifferentShard {
    Shard shard;
    std::vector<Difference> differences;
};

/* The shards in the order in which they are given. By error, the shards that could not be read. */
struct Differences {
    std::vector<DifferentShard> shards{};
    std::map<std::string, ShardSet> errors{};
};

class Definition
{
public:
    /* Dumps the template. Throws Failure. */
    Definition(Connection& connection, Shard template_shard);

    /* The statements for make_definition(), and the role in whose session they run. */
    std::string statements() const { return archive_.definition(); }
    const std::string& owner() const { return archive_.schemas()[0].owner; }
    const Archive& archive() const { return archive_; }

    /* The shards that differ from the template, or from a copy of it. The connection is to the
     * server of the shards. Several threads may call it, with connections of their own. Nothing is
     * written. */
    Differences find_different(Connection& connection, const std::vector<Shard>& shards,
                               Progress& progress) const;

    /* Notes how a copy is written, of which this is the dump; returns the changes made by default
     * privileges and event triggers. To be called before find_different(), which then takes a shard
     * for equal if it is written as the copy. */
    std::vector<Difference> compare_copy(Connection& connection, const Shard& copy,
                                         const std::string& dump);

    /* Functions whose text names the template's schema. */
    std::vector<std::string> functions_naming_template() const;

private:
    struct Change {
        bool is_missing;
        Entry entry; /* with marks */
    };
    using KeyOf = std::function<std::string(const Entry&)>;

    Entries marked(const Entries& entries, const Shard& shard) const;
    std::vector<Change> changes_by(const KeyOf& key_of, const Entries& present) const;
    std::vector<Change> changes(const Entries& present) const;
    /* The changes of a shard; or why it could not be read. */
    struct Compared {
        std::vector<Change> changes{};
        std::string error{};
    };
    std::vector<Compared> compare(Connection& connection, const Shards& shards) const;
    std::vector<Compared> compare_batch(Connection& connection, const Shards& shards,
                                        const std::string& lock_timeout) const;
    const Shard template_;
    const Archive archive_;
    Entries entries_; /* with marks */
    std::map<std::string, std::string>
        in_copy_; /* the copy's text for the template's, with marks */
};
