/*
 * The memory of a session that looks at many objects. PostgreSQL keeps the definition of each
 * relation that a session has opened, about 20 kB for a table with its indexes, until the relation
 * changes or the session ends.
 */
#pragma once

#include "pg.h"

namespace snowflake::registry
{

/*
 * For each object that is looked at, while no scan of a catalogue is open: after some thousand the
 * session's caches are emptied. They are emptied in the same way when a session has missed messages
 * about changes of others, so any code that takes a lock on a relation must be able to bear that.
 */
void count_looked_at(int objects);

} // namespace snowflake::registry
