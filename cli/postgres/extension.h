/* The extension of a database: where it is, and whether this command works with it. */

#pragma once

#include "postgres/connection.h"

/* A server without it has no shards. */
bool has_extension(Connection& connection);
/* The schema of the extension, as SQL writes it; an error if it is not installed. */
std::string extension_schema(Connection& connection);
inline void require_installed(Connection& connection)
{
    extension_schema(connection);
}

/* The same, but empty if a role other than the owner of the schema can create objects there: no
 * search_path may have it then. Empty, too, if the extension is not installed. */
std::string closed_extension_schema(Connection& connection);

/* Failure if this command does not work with the version of the extension. No error if it is
 * missing: a new server has none. */
void require_extension(Connection& connection);
