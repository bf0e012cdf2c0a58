#include "move/made.h"

#include "postgres/locked_schemas.h"

Made read_made(Connection& target, const Move& move)
{
    Made made;
    made.names = move.schemas();
    made.schemas = target.query("SELECT $1::regnamespace[]::oid[]", {made.names}).text(0, 0);
    return made;
}

MadeTables read_tables(Connection& target, const Made& made)
{
    MadeTables tables;
    const Result rows = target.query(R"(
        SELECT format('%I.%I', nspname, relname), c.oid FROM pg_class AS c JOIN pg_namespace AS n ON n.oid = relnamespace
        WHERE n.oid = ANY ($1::oid[]) AND relkind = 'r')",
                                     {made.schemas});
    for (int i = 0; i < rows.rows(); i++)
        tables[rows.text(i, 0)] = rows.text(i, 1);
    return tables;
}

void lock_made(Connection& target, const Made& made)
{
    if (!lock_schemas(target, made.names, made.schemas))
        throw Failure("a schema of the shards was renamed on " + target.server() +
                      " while the rows were copied");
}
