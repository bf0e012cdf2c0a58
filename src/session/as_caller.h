/*
 * What the command defines in the transaction of a session of another role, with the rights of the
 * caller. Schemas: the owner of shards mostly lacks CREATE on the database, and a definition is to
 * be made in one transaction of the owner's session. Comments on publications and subscriptions:
 * they note a change of global tables, in the transaction of the change.
 *
 * Only PostgreSQL's function for the command has the rights of the caller. It runs no code of
 * others. Event triggers, which do, run before and behind it, with the rights of the role.
 */
#pragma once

#include "pg.h"

namespace snowflake::session::as_caller
{

/* 42501 if the caller lacks CREATE on the database, or may not act as the role, which owns the new
 * schema. */
void create_schema(const char* name, Oid role, Oid caller);

/* 42501 also if the schema is not the role's. */
void rename_schema(const char* name, const char* new_name, Oid role, Oid caller);

/* catalog: pg_publication or pg_subscription. 42501 if the object is not the caller's; 42704. */
void comment(Oid catalog, const char* name, const char* description, Oid caller);

} // namespace snowflake::session::as_caller
