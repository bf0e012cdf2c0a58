/*
 * Schemas in the process that is the session of another role, with the rights of the caller: the
 * owner of shards mostly lacks CREATE on the database, and a definition is to be made in one
 * transaction of the owner's session.
 *
 * Only PostgreSQL's function for the command has the rights of the caller. It runs no code of
 * others. Event triggers, which do, run before and behind it, with the rights of the role.
 */
#pragma once

#include "pg.h"

namespace snowflake::session::schemas
{

/* 42501 if the caller lacks CREATE on the database, or may not act as the role, which owns the new
 * schema. */
void create(const char* name, Oid role, Oid caller);

/* 42501 also if the schema is not the role's. */
void rename(const char* name, const char* new_name, Oid role, Oid caller);

} // namespace snowflake::session::schemas
