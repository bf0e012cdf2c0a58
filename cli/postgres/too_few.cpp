#include "postgres/too_few.h"

#include "sql/sql.h"

Obstacles find_too_few(Connection& connection, const Need& published, const Need& subscribed,
                       const Need& workers, const std::string& began)
{
    std::vector<std::string> parameters;
    for (const Need& need : {published, subscribed, workers}) {
        parameters.push_back(std::to_string(need.count));
        parameters.push_back(need.text);
    }
    parameters.push_back(began);
    Obstacles found;
    found.read(connection, too_few_sql, parameters);
    return found;
}
