/*
 * Which role a session is of, and whether there may be one. The session looks at the owner again,
 * behind its own lock.
 */
#pragma once

#include "pg.h"
#include "session/session.h"

namespace snowflake::owner_session
{

/* InvalidOid if the schema does not exist. */
Oid of_schema(Oid schema);

/* Why SQL cannot run in the schema in a session of this owner. A schema that does not exist is no
 * problem of rights: session_begin() tells it. */
session::Problem problem_in(Oid schema, Oid owner);

/* 42501, with the statement that mends it, if there is a problem. */
void begin(Oid owner, const session::Problem& problem);

/*
 * A session of the owner of a table, in a transaction of this mode: with an empty search_path, the
 * caller's settings that decide how values are read and written, its lock_timeout, and its snapshot
 * if it works with one. The caller sends COMMIT. After an error the next begin() ends the
 * transaction.
 *
 * The session of a superuser's table has all rights: the functions that the table uses are those
 * that its owner has chosen.
 *
 *   42P01   there is no such table
 *   42501   as begin()
 */
void begin_of_table(Oid table, const char* mode);

/* A request that begins with the table. The session does not wait for its lock if the caller has
 * one: a session that waits in between waits for the caller. */
StringInfoData request_of(session::Kind kind, Oid table);

} // namespace snowflake::owner_session
