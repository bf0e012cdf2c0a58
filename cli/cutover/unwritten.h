/* Closed rows are dropped only if nobody has written to them after the closing: such rows are on no
 * other server.
 *
 * ALTER TABLE ... DISABLE TRIGGER ALL opens a table, and ENABLE leaves a trigger that does not fire
 * always. Either writes the row of the trigger in pg_trigger, and so this is seen without reading
 * tables. Only if a trigger was written since the closing, or a subscription has a table, all
 * tables are read for rows whose xmin has come since, or is that of a transaction that had not
 * ended then: no such transaction had written to the shards. VACUUM keeps the xmin of a row that it
 * freezes. A row of four billion transactions ago can have the same one, so a person looks at the
 * rows. Deleted rows cannot be seen. */

#pragma once

#include <string>

#include "cutover/fence.h"

/* leaves: of the closed side. other: the server that has the shards, for messages. A Failure names
 * tables that are open now, or that have such rows. A warning, if a trigger was written and no such
 * row is there. */
void require_unwritten(Connection& closed, const Fence& fence, bool leaves,
                       const std::string& other);
