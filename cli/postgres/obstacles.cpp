#include "postgres/obstacles.h"

#include <iostream>

#include "base/table.h"

void Obstacles::read(Connection& connection, const std::string& sql,
                     const std::vector<std::string>& parameters)
{
    const Result rows =
        while_doing("obstacles were looked for", [&] { return connection.query(sql, parameters); });
    for (int i = 0; i < rows.rows(); i++)
        add(connection.server(), visible(rows.text(i, 0)), visible(rows.text(i, 1)));
}

void Obstacles::raise_first() const
{
    if (!empty())
        throw Failure(front().server + ": " + front().problem + "\nHINT:  " + front().hint);
}

int print_obstacles(const Obstacles& obstacles, bool json)
{
    Table table = {{"obstacle"}, {}};
    for (const Obstacle& obstacle : obstacles) {
        table.rows.push_back({obstacle.text()});
        if (!json)
            std::cout << visible(obstacle.text(), "\n\t") << "\n";
    }
    if (json)
        print(table, Format::json);
    return obstacles.empty() ? kDone : kFound;
}
