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
    /* From the dump of a shard. Text that is no SQL to the server, the bodies of functions in
     * PL/pgSQL and other text, is kept as it is; text_schema is the schema's name that they use. */
    Definition(const Entries& dump, const Shard& origin, const std::string& text_schema);

    /* The statements that make the shard. */
    Entries for_shard(const Shard& shard) const { return render(shard, text_schema_); }

    /* Each object that is not the same in a shard. A function's text may name the template's schema
     * or its own. */
    std::vector<Difference> compare(const Entries& dump, const Shard& shard) const;

    /* Functions whose text names the schema: what they mean stays the template's in every clone. */
    std::vector<std::string> functions_naming_schema() const;

    /* Materialized views, in the order in which they depend on each other. */
    std::vector<std::string> materialized_views() const;

private:
    Entries render(const Shard& shard, const std::string& text_schema) const;

    Entries entries_; /* with marks in place of name and number */
    std::string text_schema_;
};

/* Dumps the shards, many at a time, and calls the function for each that differs. */
void compare_shards(
    Connection& connection, const Definition& definition, const std::vector<Shard>& shards,
    const std::function<void(const Shard&, const std::vector<Difference>&)>& differs);
