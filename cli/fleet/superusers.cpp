#include "fleet/superusers.h"

#include <unistd.h>

#include "base/output.h"

/* The owner of the database stands for pg_database_owner, its only member. */
void tell_of_superusers_shards(Connection& connection, const Shards& shards)
{
    const Result found = connection.query(R"(
        SELECT count(*) - 1, quote_ident(min(nspname)), (array_agg(quote_ident(rolname) ORDER BY nspname))[1]
        FROM pg_namespace AS n JOIN pg_database ON datname = current_database()
        JOIN pg_roles AS r ON r.oid = CASE nspowner WHEN 'pg_database_owner'::regrole THEN datdba ELSE nspowner END
        WHERE n.oid = ANY ($1::oid[]) AND rolsuper HAVING count(*) > 0)",
                                          {oids_of(shards)});
    if (found.rows() == 0)
        return;
    const std::string schema = visible(found.text(0, 1));
    const std::int64_t more = found.number(0, 0);
    warn(connection.server() + ": schema " + schema + " belongs to superuser " +
         visible(found.text(0, 2)) +
         (more == 0 ? "" : ", as others do (" + std::to_string(more) + " more)") +
         ", so code there has all rights. ALTER SCHEMA " + schema +
         " OWNER TO ...; and the same of its objects gives it to a role that has fewer.");
}

void tell_reader_of_superusers_shards(Connection& connection, const Shards& shards)
{
    if (isatty(STDERR_FILENO) != 0)
        tell_of_superusers_shards(connection, shards);
}
