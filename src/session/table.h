/* A table that is found by its OID, in the process that is the session of the table's owner. */
#pragma once

#include "pg.h"

namespace snowflake::session::table
{

struct OfOwner {
    Oid table;
    Oid role; /* of the session */
};

/*
 * Looks at the owner of the table, locks it, and looks again.
 *
 *   42P01   there is no such table
 *   55000   it belongs to another role
 *   55P03   the lock is not free, and the caller does not wait
 */
void lock(OfOwner of, LOCKMODE mode, bool waits);

/*
 * The query has the name of the table, which can lead elsewhere by now: a schema can belong to
 * another role than a table in it, and that role can rename it. A view or a table of that role
 * would run its code with the rights of this one. The names have been looked up, and the relations
 * are locked; nothing of them was planned or rewritten.
 *
 *   42501   a relation belongs to another role; catalogues may be read, too
 *   42P01   the table is not among them
 */
void require_names(Query* query, OfOwner of);

} // namespace snowflake::session::table
