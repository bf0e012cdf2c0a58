/* What a commit must flush and wait for: see durability.h. */
#include "sequence/durability.h"

namespace snowflake
{
namespace
{

/*
 * Whether the synchronous standbys have confirmed the record. SyncRepWaitForLSN() compares with the
 * same pointer under SyncRepLock. It only grows, so a stale read costs a needless wait and nothing
 * else. After a change of synchronous_standby_names it may still be that of the old standby.
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
 * RecordTransactionCommit() flushes and waits only if the transaction has an XID *and* has written
 * WAL: it checks XactLastRecEnd before it writes the commit record. An XID without WAL does not
 * make the commit flush, so we write an empty record. A renewed lease would do as well, but other
 * sessions would find that one unflushed, and under load every draw would write a record.
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
 * Until its transaction commits, and if that is asynchronous, an ID is protected by the clock:
 * after a crash the clock is later than the ID. If the ID is ahead of the clock, it is not, so the
 * record is flushed before a client sees the ID.
 */
void make_durable(XLogRecPtr record, bool is_ahead_of_clock)
{
    if (XLogRecPtrIsInvalid(record))
        return;
    const bool is_flushed = !XLogNeedsFlush(record);
    if (is_flushed && is_on_standbys(record))
        return;
    if (is_ahead_of_clock && !is_flushed)
        XLogFlush(record);
    make_commit_wait();
}

} // namespace snowflake
