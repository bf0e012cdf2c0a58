/* Runs the definition of a shard, as pg_dump writes it, so that no code of the shard's owner gets
 * the rights of the caller. */

#pragma once

#include <optional>
#include <string>

#include "base/shards.h"
#include "postgres/connection.h"

/* The remedy of kForeignCode; sole_owner is that of restore(). */
std::string remedy_of_foreign_code(const std::string& sole_owner);

/* The role that owns the schemas and all objects in them, without quotes; empty if there are
 * several, or if it is a superuser. */
std::string sole_owner(Connection& connection, const Shards& shards);

/* Functions that statements replace, as arrays of SQL: their OIDs, and the OIDs of their owners. */
struct Functions {
    std::string functions;
    std::string owners;
};

/* The functions of a schema, whose name is as SQL writes it. */
Functions functions_of(Connection& connection, const std::string& schema);

/* The objects that relations refer to where a definition comes from, and the superusers there: an
 * array of names with owners.
 * schemas: an array of names as SQL writes them; tables: an array of OIDs. */
struct AgreedRights {
    std::string to_objects;
};
AgreedRights agreed_rights(Connection& connection, const std::string& schemas);
AgreedRights agreed_rights_of(Connection& connection, const std::string& tables);

/* After restore(), which works with the rights of the caller, and in its transaction: throws a
 * ServerError (kGainedRight) if the owner of a new relation has got what that role may not make: a
 * child of another role's table, a foreign key without REFERENCES, a trigger without EXECUTE, a
 * foreign table without USAGE; or if the owner of a new object is a superuser on this server, and
 * not where the definition comes from. An application can have such of old, made by a superuser: it
 * is agreed to if the object that the table refers to has the same owner as where the definition
 * comes from. schemas: they are new, too. */
void require_no_gained_rights(Connection& connection, const std::string& schemas,
                              const AgreedRights& agreed);
void require_no_gained_rights_of(Connection& connection, const std::string& tables,
                                 const AgreedRights& agreed);

/* Runs in a transaction of the caller. Statements that evaluate expressions of the shard with
 * functions of other roles are run by the sole owner, and are an error if there is none, or if that
 * role is a superuser on this server. sql: as a
 * whole, or a part that pg_restore has written. The error does not repeat it. replaced: where the
 * shard is there already. It is an error if one of these functions is gone or has another owner, or
 * if the statements would make another one. */
void restore(Connection& connection, const std::string& sql, const std::string& sole_owner,
             const std::optional<Functions>& replaced = {});
