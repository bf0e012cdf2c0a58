#include "move/made.h"

Made read_made(Connection& target, const Move& move)
{
    Made made;
    made.names = move.schemas();
    made.schemas = target.query("SELECT $1::regnamespace[]::oid[]", {made.names}).text(0, 0);
    const Result tables = target.query(R"(
        SELECT format('%I.%I', nspname, relname), c.oid FROM pg_class AS c JOIN pg_namespace AS n ON n.oid = relnamespace
        WHERE n.oid = ANY ($1::oid[]) AND relkind = 'r')",
                                       {made.schemas});
    for (int i = 0; i < tables.rows(); i++)
        made.tables[tables.text(i, 0)] = tables.text(i, 1);
    return made;
}

/* is_callers() locks the schema. That of a superuser has no owner to exchange names, and the
 * function refuses one in which others may create objects. */
void lock_made(Connection& target, const Made& made)
{
    target.query(R"(
        SELECT count(snowflake_internal.is_callers(n.oid)) FROM pg_namespace AS n JOIN pg_roles AS r ON r.oid = nspowner
        WHERE n.oid = ANY ($1::oid[]) AND NOT rolsuper)",
                 {made.schemas});
    if (!target
             .query("SELECT ARRAY(SELECT to_regnamespace(n)::oid FROM unnest($1::text[]) WITH "
                    "ORDINALITY AS u (n, i) ORDER BY i) = $2::oid[]",
                    {made.names, made.schemas})
             .flag(0, 0))
        throw Failure("a schema of the shards was renamed on " + target.server() +
                      " while the rows were copied");
}
