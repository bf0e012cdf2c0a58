/* The rule for objects that the command finds by their name: they are its own only if a trusted
 * role owns them, which is the current role or a superuser. A role that may create a schema or a
 * publication can make one of any name, with code or tables of its own in it. */

#pragma once

#include <string>

#include "postgres/connection.h"

/* A condition in SQL on the OID of an owner. */
std::string is_trusted(const std::string& owner);

/* A SELECT of the OIDs of schemas: the name matches the pattern, an expression of SQL, and the
 * schema or a relation or function in it belongs to a role that is not trusted. */
std::string untrusted_schemas(const std::string& pattern);

/* An object of each such schema, its role, and the schema. The names are quoted. */
Result untrusted_objects(Connection& connection, const std::string& pattern);

/* An error if there is such a schema of this name; it has the role, and the statement that drops
 * the schema. */
void require_trusted_schema(Connection& connection, const std::string& schema);

/* Takes from all other roles the rights that default privileges have given them: to create in the
 * schema, and to write to its tables. The owner of a subscription of that name keeps them. */
std::string keeping_to_owner(const std::string& schema);
