/* Makes the commit of a transaction that draws protect its IDs. */
#pragma once

#include "pg.h"

namespace snowflake
{

/*
 * Makes the commit of this transaction wait until `record`, its own or another session's, is on
 * disk and on a synchronous standby. If an ID is ahead of the clock, the record is flushed at once.
 * An invalid pointer (a sequence without WAL): nothing to do.
 */
void make_durable(XLogRecPtr record, bool is_ahead_of_clock);

} // namespace snowflake
