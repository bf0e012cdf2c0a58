/* What the transaction that draws an ID must see to, so that its commit protects the ID. */
#pragma once

#include "pg.h"

namespace snowflake
{

/*
 * Makes the commit of this transaction wait until the record at `lease`, its own or another
 * session's, is on disk and on a synchronous standby. Where an ID leads the clock, the record is
 * flushed at once. Nothing to do for an invalid pointer: no WAL, no promise.
 */
void make_durable(XLogRecPtr lease, bool leads_the_clock);

} // namespace snowflake
