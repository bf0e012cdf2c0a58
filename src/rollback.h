/*
 * IDs from a file that a rollback throws away. ALTER SEQUENCE, TRUNCATE ... RESTART IDENTITY and
 * SET LOGGED give a sequence a new file; if their transaction or subtransaction is rolled back, the
 * old one is back, and knows nothing of what was drawn from the new one. The IDs may well live on:
 * in another column, in a variable of a function that has caught the error, with the client.
 *
 * The clock keeps the old file's next IDs above them: they are never ahead of it (may_be_lost in
 * PageAddress), and a rollback lasts until their millisecond is over.
 */
#pragma once

#include "layout.h"

namespace snowflake::rollback
{

/* Once per session, from _PG_init. */
void initialize();

/* An ID of this millisecond was drawn from such a file. */
void note_at_stake(UnixMs ms);

} // namespace snowflake::rollback
