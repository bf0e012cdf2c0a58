/* The definition of a shard without its schema's name and its number: to make others like it, and
 * to compare them. */

#pragma once

#include <functional>
#include <string>
#include <vector>

#include "catalog.h"
#include "dump.h"

struct Difference {
    bool is_missing; /* the template has it and the shard has not; false: the other way round */
    std::string object;
    std::string sql;
};

class Definition
{
public:
    /* From the dump of a shard, which is the template or made from it. */
    Definition(Entries dump, const Shard& origin, Shard template_shard);

    /* The statements that make the shard. */
    std::string sql_for(const Shard& shard) const;

    /* Each object that is not the same in a shard. A comment or the body of a function is text, and
     * may name the template's schema or the shard's own. */
    std::vector<Difference> compare(const Entries& dump, const Shard& shard) const;

    /* With marks in place of names and numbers; only types and names are for others. */
    const Entries& entries() const { return entries_; }
    /* Whether a function names the template's schema in its text, so that it does in every clone.
     */
    bool names_template(const Entry& entry) const;

private:
    Entries entries_;
    Shard template_;
};

/* Dumps the shards, many at a time, and calls the function for each that differs. */
void compare_shards(
    Connection& connection, const Definition& definition, const std::vector<Shard>& shards,
    const std::function<void(const Shard&, const std::vector<Difference>&)>& differs);
