#include "durability.h"

namespace snowflake
{
namespace
{

/*
 * Whether a commit would find the record on the synchronous standbys already. SyncRepWaitForLSN()
 * compares with the same pointer under SyncRepLock; it only grows, so reading an old one costs a
 * needless wait and nothing else.
 */
bool is_on_standbys(XLogRecPtr record)
{
    const bool has_standbys = SyncRepStandbyNames != nullptr && SyncRepStandbyNames[0] != '\0';
    if (!SyncRepRequested() || !has_standbys)
        return true;
    const int mode = synchronous_commit == SYNCHRONOUS_COMMIT_REMOTE_WRITE   ? SYNC_REP_WAIT_WRITE
                     : synchronous_commit == SYNCHRONOUS_COMMIT_REMOTE_APPLY ? SYNC_REP_WAIT_APPLY
                                                                             : SYNC_REP_WAIT_FLUSH;
    const volatile XLogRecPtr* confirmed = &WalSndCtl->lsn[mode];
    return record <= *confirmed;
}

/*
 * RecordTransactionCommit() flushes and waits only for a transaction that has an ID *and* has
 * written WAL; it looks at XactLastRecEnd before it writes the commit record, so an ID alone does
 * not do. Hence the empty record. A renewed lease would do as well, but it would be as young as the
 * one that we found, and under load every session would write one for the next.
 */
void make_commit_wait()
{
    if (TransactionIdIsValid(GetTopTransactionIdIfAny()) && !XLogRecPtrIsInvalid(XactLastRecEnd))
        return;
    GetTopTransactionId();
    char nothing = 0;
    XLogBeginInsert();
    XLogRegisterData(&nothing, sizeof(nothing));
    XLogInsert(RM_XLOG_ID, XLOG_NOOP);
}

} // namespace

/*
 * An ID whose transaction is still open, or commits asynchronously, is protected by the clock:
 * after a crash it is later than the ID. Not so where the ID leads the clock; so then the record is
 * flushed before the ID is seen.
 */
void make_durable(XLogRecPtr lease, bool leads_the_clock)
{
    if (XLogRecPtrIsInvalid(lease))
        return;
    const bool is_flushed = !XLogNeedsFlush(lease);
    if (is_flushed && is_on_standbys(lease))
        return;
    if (leads_the_clock && !is_flushed)
        XLogFlush(lease);
    make_commit_wait();
}

} // namespace snowflake
