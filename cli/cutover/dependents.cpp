#include "cutover/dependents.h"

#include "sql/sql.h"

namespace
{

} // namespace

std::vector<std::string> find_dependents(Connection& connection, const Shards& shards)
{
    std::vector<std::string> dependents;
    for (const std::string& dependent :
         texts_of(connection.query(dependents_sql, {schemas_of(shards)})))
        dependents.push_back(visible(dependent));
    return dependents;
}
