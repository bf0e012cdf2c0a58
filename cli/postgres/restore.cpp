#include "postgres/restore.h"

#include "postgres/error_text.h"
#include "sql/sql.h"

namespace
{

void call(Connection& connection, const std::string& function,
          const std::vector<std::string>& arguments)
{
    try {
        connection.query("SELECT snowflake_internal." + function, arguments);
    } catch (const ServerError& error) {
        throw ServerError(without_text(error.what(), ""), error.sqlstate);
    }
}

ServerError with_remedy(const ServerError& error, const std::string& sole_owner)
{
    return {error.what() + ("\nHINT:  " + remedy_of_foreign_code(sole_owner)), error.sqlstate};
}

void run_as(Connection& connection, const std::string& role, const std::string& sql)
{
    try {
        call(connection, "run_as_role($1, $2)", {role, sql});
    } catch (const ServerError& error) {
        if (error.sqlstate == kForeignCode)
            throw with_remedy(error, role);
        throw;
    }
}

/* Arrays of OIDs: the relations of schemas, and the schemas, whose names are as SQL writes them. By
 * pg_depend, whose index leads to the relations. In a trial a schema can be missing. */
Result relations_of(Connection& connection, const std::string& schemas)
{
    return connection.query(R"(
        WITH schemas AS MATERIALIZED (SELECT ARRAY(SELECT to_regnamespace(n)::oid FROM unnest($1::text[]) AS n) AS oids)
        SELECT ARRAY(SELECT objid FROM pg_depend WHERE refclassid = 'pg_namespace'::regclass
                     AND refobjid = ANY ((SELECT oids FROM schemas)::oid[]) AND classid = 'pg_class'::regclass), oids
        FROM schemas)",
                            {schemas});
}

void require_none_gained(Connection& connection, const std::string& relations,
                         const std::string& schemas, const AgreedRights& agreed)
{
    const Result gained =
        connection.query(gained_rights_sql, {relations, schemas, agreed.to_objects});
    if (gained.rows() > 0)
        throw ServerError("ERROR:  " + gained.text(0, 0) + "\nHINT:  " + gained.text(0, 1),
                          kGainedRight);
}

/* On this server; or it can become one. */
bool is_superuser(Connection& connection, const std::string& role)
{
    return connection
               .query("SELECT FROM pg_roles AS s JOIN pg_roles AS r ON r.rolname = $1 WHERE "
                      "s.rolsuper AND pg_has_role(r.oid, s.oid, 'MEMBER')",
                      {role})
               .rows() > 0;
}

} // namespace

AgreedRights agreed_rights_of(Connection& connection, const std::string& tables)
{
    return {connection.query(agreed_rights_sql, {tables}).text(0, 0)};
}

AgreedRights agreed_rights(Connection& connection, const std::string& schemas)
{
    return agreed_rights_of(connection, relations_of(connection, schemas).text(0, 0));
}

void require_no_gained_rights(Connection& connection, const std::string& schemas,
                              const AgreedRights& agreed)
{
    const Result made = relations_of(connection, schemas);
    require_none_gained(connection, made.text(0, 0), made.text(0, 1), agreed);
}

void require_no_gained_rights_of(Connection& connection, const std::string& tables,
                                 const AgreedRights& agreed)
{
    require_none_gained(connection, tables, "{}", agreed);
}

std::string remedy_of_foreign_code(const std::string& sole_owner)
{
    if (sole_owner.empty())
        return "Give all objects of the shard to one role that is no superuser, and this works "
               "with its rights; or to the role that connects.";
    return "A table to which a foreign key of the shard leads has an expression with this "
           "function, such as that of an index. Drop the expression there, or the key.";
}

std::string sole_owner(Connection& connection, const Shards& shards)
{
    const Result owner = connection.query(sole_owner_sql, {schemas_of(shards)});
    return owner.rows() == 0 ? "" : owner.text(0, 0);
}

Functions functions_of(Connection& connection, const std::string& schema)
{
    const Result functions = connection.query(R"(
        SELECT coalesce(array_agg(oid ORDER BY oid), '{}'), coalesce(array_agg(proowner ORDER BY oid), '{}')
        FROM pg_proc WHERE pronamespace = $1::regnamespace)",
                                              {schema});
    return {functions.text(0, 0), functions.text(0, 1)};
}

void restore(Connection& connection, const std::string& sql, const std::string& sole_owner,
             const std::optional<Functions>& replaced)
{
    connection.run("SAVEPOINT snowflake_restore");
    try {
        if (replaced)
            call(connection, "replace_guarded($1, $2, $3)",
                 {sql, replaced->functions, replaced->owners});
        else
            call(connection, "run_guarded($1)", {sql});
    } catch (const ServerError& error) {
        if (error.sqlstate != kForeignCode)
            throw;
        if (sole_owner.empty())
            throw with_remedy(error, sole_owner);
        connection.run("ROLLBACK TO snowflake_restore");
        /* It is none where the definition comes from, so code of others would gain all rights. */
        if (is_superuser(connection, sole_owner))
            throw with_remedy(error, "");
        run_as(connection, sole_owner, sql);
    }
    connection.run("RELEASE snowflake_restore");
}
