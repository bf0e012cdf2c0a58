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
    /* From the dump of a shard. What is text to the server, such as a body in PL/pgSQL, is kept as
     * it is; text_schema is the name of the schema that it uses. */
    Definition(Entries dump, const Shard& origin, const std::string& text_schema);

    /* The statements that make the shard. */
    std::string sql_for(const Shard& shard) const;

    /* Each object that is not the same in a shard. A function's text may name the template's schema
     * or its own. */
    std::vector<Difference> compare(const Entries& dump, const Shard& shard) const;

    /* With marks in place of names and numbers; only types and names are for others. */
    const Entries& entries() const { return entries_; }
    /* Whether the text of a function names the schema, so that it does in every clone. */
    bool names_schema(const Entry& entry) const;

private:
    Entries entries_;
    std::string text_schema_;
};

/* Dumps the shards, many at a time, and calls the function for each that differs. */
void compare_shards(
    Connection& connection, const Definition& definition, const std::vector<Shard>& shards,
    const std::function<void(const Shard&, const std::vector<Difference>&)>& differs);
