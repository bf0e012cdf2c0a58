/* SQL of others runs in a session of its owner: a process of the server that is authenticated as
 * that role, and that the connection drives by functions of the library (src/session/session.h). A
 * connection has one at a time.
 *
 * The two are two sessions to PostgreSQL's locks. So the connection is in no transaction, or in one
 * that has written nothing and has locked nothing for which the session could wait. When that
 * transaction ends, one of the session is rolled back. */

#pragma once

#include <functional>
#include <map>
#include <string>
#include <vector>

#include "base/shards.h"
#include "postgres/values.h"

/* Why no session of the owner is possible for some of the schemas, by OID: for example because a
 * schema is a superuser's, and has code of others. */
std::map<std::string, std::string> find_session_problems(Connection& connection,
                                                         const Shards& shards);

/* A session of the role that is new or as new, with an empty search_path. commands run in it first:
 * BEGIN, or none. lock_timeout is that of the connection. role: without quotes. */
void begin_session(Connection& connection, const std::string& role, const std::string& commands);
/* The end of an expression of SQL for the commands that begin a session. */
inline const char* const kWithLockTimeout =
    "|| format('; SET lock_timeout = %L', current_setting('lock_timeout'))";

/* Commands of this command, such as ROLLBACK TO a savepoint. */
void command_session(Connection& connection, const std::string& commands);
void commit_session(Connection& connection);

/* A transaction of a session of the role, within one of the connection; both are rolled back if
 * work throws. */
void in_session(Connection& connection, const std::string& role, const std::function<void()>& work);

/* Statements, in a transaction of the session that they cannot end. Errors do not repeat the text.
 */
void run_in_session(Connection& connection, const std::string& sql);
/* One statement. Neither the session nor the connection is in a transaction. */
void run_alone_in_session(Connection& connection, const std::string& sql);

/* Opens a query in the session, and returns its columns; a Failure if it has none. parameters:
 * none, or $1 and $2, bigint. */
using Parameters = std::vector<std::string>;
std::vector<Column> open_in_session(Connection& connection, const std::string& sql,
                                    const Parameters& parameters);
/* The rows of that query, in batches that memory can hold. */
void read_in_session(Connection& connection, const std::vector<Column>& columns,
                     const std::function<void(std::vector<Row> rows)>& take);

/* All rows of a query, with parameters $1 to $9 as Connection::query() takes them. */
Result query_in_session(Connection& connection, const std::string& sql,
                        const Parameters& parameters);

/* A comment in the session's transaction, but with the rights of the connection, whose role owns
 * the object. catalog: pg_publication, pg_subscription. */
void comment_in_session(Connection& connection, const std::string& catalog, const std::string& name,
                        const std::string& comment);

/* A schema of the session's role, in its transaction, but with the rights of the connection, whose
 * role needs CREATE on the database. Names without quotes. */
void create_schema(Connection& connection, const std::string& name);
void rename_schema(Connection& connection, const std::string& name, const std::string& new_name);

/* A definition in the session's transaction: schemas that are new, and then the statements, such as
 * Archive::sql() without the items of these schemas. */
void make_definition(Connection& connection, const std::vector<std::string>& schemas,
                     const std::string& sql);
