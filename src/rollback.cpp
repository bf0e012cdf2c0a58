#include "rollback.h"

#include "clock.h"
#include "pg.h"

namespace snowflake::rollback
{
namespace
{

constexpr UnixMs kNone{INT64_MIN};
UnixMs at_stake = kNone; /* the latest of this transaction */

/*
 * A millisecond at most; a clock that is set back meanwhile is not waited for. The sequence's lock
 * is still held, both in AbortTransaction() and in AbortSubTransaction(), so nobody draws from the
 * old file before.
 */
void wait_until_past()
{
    constexpr long kNapUs = 200;
    constexpr int kMaxNaps = 10;
    for (int naps = 0; naps < kMaxNaps && clock::now() <= at_stake; ++naps)
        pg_usleep(kNapUs);
}

/* A prepared transaction can be rolled back in no time. */
void at_transaction_end(XactEvent event, void*)
{
    if (event == XACT_EVENT_ABORT || event == XACT_EVENT_PREPARE)
        wait_until_past();
    if (event == XACT_EVENT_ABORT || event == XACT_EVENT_PREPARE || event == XACT_EVENT_COMMIT)
        at_stake = kNone;
}

void at_subtransaction_end(SubXactEvent event, SubTransactionId, SubTransactionId, void*)
{
    if (event == SUBXACT_EVENT_ABORT_SUB)
        wait_until_past();
}

} // namespace

void initialize()
{
    RegisterXactCallback(at_transaction_end, nullptr);
    RegisterSubXactCallback(at_subtransaction_end, nullptr);
}

void note_at_stake(UnixMs ms)
{
    if (ms > at_stake)
        at_stake = ms;
}

} // namespace snowflake::rollback
