/*
 * Whether there may be a session of the owner of a schema or a table. Neither is locked here: the
 * session looks at the owner again, behind its own lock.
 */
#pragma once

#include "errors.h"
#include "pg.h"
#include "session/session.h"

namespace snowflake::owner_session
{

/* Why a session of the role is not possible, in a schema or on a table of the role if one is given.
 */
errors::Problem problem_of(Oid role, Oid schema = InvalidOid, Oid table = InvalidOid);

/* 42501, with the statement that mends it, if there is a problem. */
void begin(Oid role, Oid schema = InvalidOid, Oid table = InvalidOid);

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
