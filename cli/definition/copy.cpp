#include "definition/copy.h"

#include "base/timeouts.h"
#include "definition/marks.h"
#include "postgres/advisory.h"
#include "postgres/drop_schemas.h"
#include "postgres/locked_schemas.h"
#include "postgres/session.h"
#include "postgres/settings.h"

namespace
{

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

/* The caller holds the lock, so all of them are of killed commands, or the caller's own. */
void drop_copies(Connection& connection)
{
    const Result copies = connection.query(
        "SELECT quote_ident(nspname), oid FROM pg_namespace WHERE nspname ~ $1", {kCopyPattern});
    for (int i = 0; i < copies.rows(); i++)
        drop_schema(connection, copies.text(i, 0), copies.text(i, 1));
}

} // namespace

Copy::Copy(const std::string& dsn, const Shard& shard, const Definition& definition)
    : connection_(dsn), owner_(definition.owner()), shard_(shard), named_(shard)
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
    drop_copies(connection_);
    /* The dump has the schema's name in it, so the shard has another name while it runs. That name
     * is never committed: other sessions find the shard by its own name all the time, and a
     * rollback, also that of a killed command, restores it. */
    const std::string privileges = initial_privileges(connection_, shard, shard_.quoted);
    try {
        in_session(connection_, owner_, [&] {
            rename_schema(connection_, shard.schema, away);
            make_definition(connection_, {shard.schema}, definition.statements());
            rename_schema(connection_, shard.schema, shard_.schema);
            rename_schema(connection_, away, shard.schema);
            run_in_session(connection_, privileges);
        });
    } catch (const ServerError& error) {
        throw ServerError("the definition of schema " + shard.schema +
                              " cannot be made a second time: " + error.what(),
                          error.sqlstate);
    }
}

Copy::~Copy()
{
    try {
        drop_copies(connection_);
    } catch (const std::exception&) {
        /* verify shows it, and the next copy drops it. */
    }
}

void Copy::renumber(int number)
{
    /* With the old number still: the objects that have it are the ones to be changed. */
    const std::string statements = renumbering();
    shard_.number = number;
    named_ = shard_;
    run(unmark(statements, shard_));
}

void Copy::run(const std::string& statements)
{
    in_session(connection_, owner_, [&] { run_in_session(connection_, statements); });
}

void Copy::rename(int suffix)
{
    const std::string name = shard_.schema;
    const std::string new_name = name.substr(0, name.rfind('_') + 1) + std::to_string(suffix);
    if (new_name == name)
        return;
    in_session(connection_, owner_, [&] { rename_schema(connection_, name, new_name); });
    shard_.schema = shard_.quoted = new_name;
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
    run(functions.text(0, 2));
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
