#include "definition/copy.h"

#include "base/timeouts.h"
#include "definition/marks.h"
#include "postgres/advisory.h"
#include "postgres/drop_schemas.h"
#include "postgres/locked_schemas.h"
#include "postgres/restore.h"
#include "postgres/settings.h"

namespace
{

std::string renaming(const std::string& from, const std::string& to)
{
    return "ALTER SCHEMA " + from + " RENAME TO " + to + ";";
}

/* Not if the name leads to another schema than that of the OID. Another session may read the
 * catalogues while the copy is dropped: a pg_dump of the whole database locks the tables in another
 * order. Each try is a transaction of its own, so the deadlock has undone all of it. */
void drop_schema(Connection& connection, const std::string& name, const std::string& oid)
{
    for (int tries = 3;; tries--)
        try {
            connection.run("BEGIN");
            if (lock_schemas(connection, sql_array({name}), sql_array({oid})))
                drop_schemas(connection, {name});
            connection.run("COMMIT");
            return;
        } catch (const ServerError& error) {
            connection.rollback();
            if (error.sqlstate != kDeadlock || tries == 0)
                throw;
        }
}

/* pg_dump leaves out the privileges that a schema had when the database was made. Only the schema
 * public has such, also if it was renamed. The owner has its privileges by CREATE SCHEMA. $2 is
 * cast, because the arguments of format() can be of any type. */
std::string initial_privileges(Connection& connection, const Shard& shard, const std::string& name)
{
    return connection
        .query(R"(
            SELECT coalesce(string_agg(format('GRANT %s ON SCHEMA %s TO %s;', privilege_type, $2::text,
                       CASE WHEN grantee = 0 THEN 'PUBLIC' ELSE quote_ident(pg_get_userbyid(grantee)) END), ''), '')
            FROM pg_namespace AS n JOIN pg_init_privs AS i ON i.classoid = n.tableoid AND i.objoid = n.oid,
                 aclexplode(nspacl) WHERE nspname = $1 AND grantee <> nspowner)",
               {shard.schema, name})
        .text(0, 0);
}

/* Relations, functions and types of a schema with their owners. Nothing else is changed by name.
 * pg_depend has an index for this; in pg_class and its like all rows would be read. */
std::string objects_of(Connection& connection, const std::string& schema)
{
    return connection
        .query(R"(
            SELECT coalesce(string_agg(concat_ws(' ', classid, objid, relowner, proowner, typowner), ', ' ORDER BY classid, objid), '')
            FROM pg_depend
            LEFT JOIN pg_class AS c ON classid = 'pg_class'::regclass AND c.oid = objid
            LEFT JOIN pg_proc AS p ON classid = 'pg_proc'::regclass AND p.oid = objid
            LEFT JOIN pg_type AS t ON classid = 'pg_type'::regclass AND t.oid = objid
            WHERE refclassid = 'pg_namespace'::regclass AND refobjid = $1)",
               {schema})
        .text(0, 0);
}

} // namespace

Copy::Copy(const std::string& dsn, const Shard& shard, const std::string& dump)
    : connection_(dsn), sole_owner_(sole_owner(connection_, {shard})), shard_(shard), named_(shard)
{
    const std::string process = std::to_string(connection_.process_id());
    const std::string away = "snowflake_copy_" + process + "_0";
    shard_.schema = shard_.quoted = "snowflake_copy_" + process + "_1";
    /* The advisory lock ends with the session, also if the command is killed, so a copy without a
     * holder is a leftover. It is taken first: without it, the copy of another command that is at
     * work would be dropped. */
    withstand_settings(connection_); /* it waits in a transaction */
    connection_.run("SET client_min_messages = error");
    lock_by_name(connection_, "snowflake-shard copy", "copying a shard", timeouts::kCopyLock);
    const Result left = connection_.query(
        "SELECT quote_ident(nspname), oid FROM pg_namespace WHERE nspname ~ $1", {kCopyPattern});
    for (int i = 0; i < left.rows(); i++)
        drop_schema(connection_, left.text(i, 0), left.text(i, 1));
    /* The dump has the schema's name in it, so the shard has another name while it runs. That name
     * is never committed: other sessions find the shard by its own name all the time, and a
     * rollback, also that of a killed command, restores it. */
    const std::string privileges = initial_privileges(connection_, shard, shard_.quoted);
    const AgreedRights agreed = agreed_rights(connection_, sql_array({shard.quoted}));
    try {
        connection_.run("BEGIN;" + renaming(shard.quoted, away));
        restore(connection_, dump, sole_owner_);
        require_no_gained_rights(connection_, sql_array({shard.quoted}), agreed);
        connection_.run(renaming(shard.quoted, shard_.quoted) + renaming(away, shard.quoted) +
                        privileges);
        /* Until COMMIT nobody else can exchange names or objects. */
        oid_ = connection_.query("SELECT $1::regnamespace::oid", {shard_.quoted}).text(0, 0);
        objects_ = objects_of(connection_, oid_);
        commit();
    } catch (const ServerError& error) {
        throw ServerError("the definition of schema " + shard.schema +
                              " cannot be made a second time: " + error.what(),
                          error.sqlstate);
    }
}

Copy::~Copy()
{
    connection_.rollback();
    try {
        drop_schema(connection_, shard_.quoted, oid_);
    } catch (const std::exception&) {
        /* verify shows it, and the next copy drops it. */
    }
}

void Copy::renumber(int number)
{
    /* Before their definitions: the owner of one can drop it meanwhile. */
    const Functions functions = functions_of(connection_, shard_.quoted);
    /* With the old number still: the objects that have it are the ones to be changed. */
    const std::string statements = renumbering();
    shard_.number = number;
    named_ = shard_;
    restore(connection_, unmark(statements, shard_), sole_owner_, functions);
    commit();
}

void Copy::commit()
{
    connection_.run("COMMIT; BEGIN");
    if (!lock_schemas(connection_, sql_array({shard_.quoted}), sql_array({oid_})) ||
        objects_of(connection_, oid_) != objects_)
        throw Failure("schema " + shard_.schema + " or its objects were exchanged on " +
                      connection_.server() + " while the shard was copied. Nothing was made.");
}

void Copy::rename(int suffix)
{
    const std::string old = shard_.quoted;
    const std::string name = old.substr(0, old.rfind('_') + 1) + std::to_string(suffix);
    if (name == old)
        return;
    connection_.run(renaming(old, name));
    shard_.schema = shard_.quoted = name;
    /* The number stays. The search_path that functions set is text, and has the old name. */
    renumber(shard_.number);
}

/* Constructors of ranges have the name of their type, and are not in a dump. */
void Copy::rename_functions()
{
    const Result functions = connection_.query(
        R"(
        SELECT array_agg(oid), array_agg(proname),
               string_agg(format('ALTER ROUTINE %s RENAME TO %I;', oid::regprocedure, name), '')
        FROM (SELECT oid, proname, $2 || '_' || dense_rank() OVER (ORDER BY proname) AS name
              FROM pg_proc AS p WHERE pronamespace = $1::regnamespace AND NOT EXISTS (
                  SELECT FROM pg_depend WHERE classid = 'pg_proc'::regclass AND objid = p.oid AND deptype = 'i')) AS f
        HAVING count(*) > 0)",
        {shard_.quoted, shard_.schema});
    if (functions.rows() == 0)
        return;
    functions_ = functions.text(0, 0);
    names_ = functions.text(0, 1);
    connection_.run(functions.text(0, 2));
    commit();
}

std::string Copy::names_of_functions()
{
    return connection_
        .query(R"(
            SELECT coalesce(string_agg(format('ALTER ROUTINE %s RENAME TO %I;', oid::regprocedure, name), ''), '')
            FROM unnest($1::oid[], $2::text[]) AS f (oid, name) JOIN pg_proc AS p USING (oid)
            WHERE pronamespace = $3::regnamespace)",
               {functions_, names_, shard_.quoted})
        .text(0, 0);
}

std::string Copy::renumbering()
{
    return renumbering_of(connection_, shard_, named_);
}
