/* The definition of a template, and what other shards have in place of it. */

#pragma once

#include <functional>
#include <map>
#include <string>
#include <vector>

#include "copy.h"
#include "entries.h"

struct Difference {
    bool is_missing; /* the template has it and the shard has not; false: the other way round */
    std::string object;
    std::string sql;
};

struct DifferentShard {
    Shard shard;
    std::vector<Difference> differences;
};

class Definition
{
public:
    /* Dumps the template. */
    Definition(std::string dsn, const Shard& template_shard);

    const std::string& dump() const { return dump_; }

    /* The shards that differ from the template. Where only the text of an object differs, both are
     * restored once, because the server writes an expression in another way after that. This makes
     * a copy for a short time; without the rights for it, the texts are compared as they are. */
    std::vector<DifferentShard> find_different(Connection& connection,
                                               const std::vector<Shard>& shards);

    /* What default privileges and event triggers have changed in a copy of the template. */
    std::vector<Difference> compare_copy(Connection& connection, const Shard& copy);

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
    bool may_be_written_otherwise(const std::vector<Change>& changes) const;
    void restore(Connection& connection, const Shard& shard, const std::string& dump);
    void note_restored(const Entries& entries, const Entries& restored);

    const std::string dsn_;
    const Shard template_;
    std::string dump_;
    Entries entries_;                             /* with marks */
    std::map<std::string, std::string> restored_; /* texts with marks, before and after */
    bool can_restore_ = true;
};
