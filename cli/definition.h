/* The definition of a shard without its schema's name and its number: to make others like it, and
 * to compare them. */

#pragma once

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

    /* Functions that name the template's schema in their text, and do so in every clone. */
    std::vector<std::string> functions_naming_template() const;

private:
    Entries entries_;
    Shard template_;
};

struct DifferentShard {
    Shard shard;
    std::vector<Difference> differences;
};

/* Those of the shards that differ. They are dumped many at a time. */
std::vector<DifferentShard> find_different(Connection& connection, const Definition& definition,
                                           const std::vector<Shard>& shards);
