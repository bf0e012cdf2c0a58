/* The sizes of shards. */

#pragma once

#include <string>

/* A SELECT of schema and size: bytes of its tables and materialized views, with TOAST and indexes.
 * schemas: SQL with their OIDs, as it stands behind ANY. A schema without tables has no row. No
 * relation is opened: each would stay in the memory of the session, and one that is locked would be
 * waited for. */
std::string sizes_sql(const std::string& schemas);
