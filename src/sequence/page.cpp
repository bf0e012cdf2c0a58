/* One sequence's page: see page.h. After read_seq_tuple() and nextval_internal() in sequence.c. */
#include "sequence/page.h"

#include "rule/lease.h"
#include "sequence/clock.h"

namespace snowflake
{
namespace
{

/* Two words, which fit into registers. The buffer is in the PageAddress. */
struct LockedPage {
    Page page;
    Form_pg_sequence_data data;
};

/*
 * SELECT FOR UPDATE on a sequence could once leave an XID in its tuple's xmax, which ends in
 * failing clog lookups. read_seq_tuple() clears it like a hint bit, unlogged; so does this. It is
 * cleared before a lease is written, so no hint marks a page with a lease dirty.
 */
void clear_stray_xmax(Buffer buffer, HeapTupleHeader tuple)
{
    if (HeapTupleHeaderGetRawXmax(tuple) == InvalidTransactionId)
        return;
    HeapTupleHeaderSetXmax(tuple, InvalidTransactionId);
    tuple->t_infomask &= static_cast<std::uint16_t>(~HEAP_XMAX_COMMITTED);
    tuple->t_infomask |= HEAP_XMAX_INVALID;
    MarkBufferDirtyHint(buffer, true);
}

/* The pin stays: see page_pin.h. */
void unlock_page(const PageAddress& address)
{
    LockBuffer(address.buffer, BUFFER_LOCK_UNLOCK);
}

/* As read_seq_tuple(), but it reports a corrupted page after the unlock. */
LockedPage lock_page(PageAddress& address)
{
    page_pin::pin(address);
    LockBuffer(address.buffer, BUFFER_LOCK_EXCLUSIVE);
    const Page page = BufferGetPage(address.buffer);
    if (!pg::is_sequence_page(page)) {
        unlock_page(address);
        elog(ERROR, "bad magic number in sequence with OID %u", address.relation);
    }

    const ItemId item = PageGetItemId(page, FirstOffsetNumber);
    auto* const tuple = reinterpret_cast<HeapTupleHeader>(PageGetItem(page, item));
    clear_stray_xmax(address.buffer, tuple);
    return {page, reinterpret_cast<Form_pg_sequence_data>(reinterpret_cast<char*>(tuple) +
                                                          tuple->t_hoff)};
}

Stored stored_in(LockedPage locked)
{
    return {locked.data->last_value, locked.data->is_called,
            locked.data->log_cnt == kLogCountOfSet};
}

/* The record that protects the page's position; none where the sequence writes no WAL. */
XLogRecPtr last_record(LockedPage locked, const PageAddress& address)
{
    return address.needs_wal ? PageGetLSN(locked.page) : InvalidXLogRecPtr;
}

void set_tuple(LockedPage locked, Position position, std::int64_t log_count)
{
    locked.data->last_value = raw(position);
    locked.data->is_called = true;
    locked.data->log_cnt = log_count;
}

/*
 * The WAL record of nextval(), XLOG_SEQ_LOG, with the tuple as it stands on the page. seq_redo()
 * makes the page anew from it. The item's own length is logged, because replay must make an item of
 * the same length. To be called in a critical section, under the exclusive lock.
 */
XLogRecPtr log_tuple(LockedPage locked, const PageAddress& address)
{
    XLogBeginInsert();
    XLogRegisterBuffer(0, address.buffer, REGBUF_WILL_INIT);
    xl_seq_rec record;
    pg::set_locator(&record, address.file);
    XLogRegisterData(reinterpret_cast<char*>(&record), sizeof(record));
    const ItemId item = PageGetItemId(locked.page, FirstOffsetNumber);
    XLogRegisterData(PageGetItem(locked.page, item),
                     static_cast<pg::WalDataLength>(ItemIdGetLength(item)));

    /* In a variable of its own: PageSetLSN is a macro that evaluates its argument twice. */
    const XLogRecPtr lsn = XLogInsert(RM_SEQ_ID, XLOG_SEQ_LOG);
    PageSetLSN(locked.page, lsn);
    return lsn;
}

/*
 * Logs the horizon, which is a lease ahead of `position`, and writes `position` with that lease.
 *
 * The tuple holds the horizon during XLogInsert() and the position after it. No reader sees the
 * horizon: reading the page, also for a checkpoint, takes a lock on it, and ours is exclusive. And
 * a full page image that XLogInsert() takes (wal_consistency_checking) equals what replay makes.
 *
 * The record itself carries no lease: the lease belongs to the page that this server goes on with.
 */
void log_horizon(LockedPage locked, const PageAddress& address, Position position,
                 Position max_value)
{
    const std::int64_t room = raw(max_value) - raw(position);
    const std::int64_t lease = room < kLeasePositions ? room : kLeasePositions;

    START_CRIT_SECTION();
    set_tuple(locked, Position{raw(position) + lease}, kNoLease);
    const XLogRecPtr lsn = log_tuple(locked, address);
    set_tuple(locked, position, encode_lease(lsn, lease));
    END_CRIT_SECTION();
}

/*
 * A transaction that logs needs a transaction ID, so that its commit flushes the record and waits
 * for a synchronous standby (RecordTransactionCommit). Assigning one takes locks and memory, which
 * is not allowed under the page's lock.
 */
bool can_log()
{
    return TransactionIdIsValid(GetTopTransactionIdIfAny());
}

enum class Write { done, needs_xid };

/*
 * Writes the position of a draw.
 *
 * A page that is clean is marked dirty, and then its LSN is compared with the redo pointer. This
 * order closes the race with a checkpoint: a checkpoint first publishes its redo pointer, and then
 * collects the dirty buffers. If we read the old redo pointer, our buffer was dirty before the new
 * one was published, so the checkpoint collects it, waits for our lock and writes our position. If
 * we read the new redo pointer, the page's LSN is not after it, and we log. nextval_internal()
 * compares first and marks the buffer afterwards. A checkpoint between the two does not write the
 * page, no record follows its redo pointer, and a crash takes the values back.
 *
 * Up to 18, a page that is dirty is not compared. FlushBuffer() holds the share lock until it has
 * cleared BM_DIRTY, so under our exclusive lock the page is not being written: it has been dirty
 * since a draw found it clean, and compared. A redo pointer that was published later than that
 * comparison belongs to a checkpoint that writes the page after this draw. Core's nextval() and
 * setval(), and replay, mark the page dirty without that comparison, but they leave no valid lease,
 * so we log.
 *
 * From 19 on, every draw compares. pg_buffercache_mark_dirty() can mark a page that has been clean
 * since the last checkpoint published its redo pointer, and leaves the lease as it is. The argument
 * above holds for a page that was dirty before, too: it stays dirty while we hold the lock.
 *
 * A draw that finds the page clean assigns a transaction ID before it marks the page: a page that
 * is left dirty without the record that is due would not be compared again.
 */
Write write_drawn(LockedPage locked, const PageAddress& address, Position position,
                  Position max_value)
{
    if (!address.needs_wal) {
        MarkBufferDirty(address.buffer);
        set_tuple(locked, position, kNoLease);
        return Write::done;
    }
    const bool was_clean = !pg::is_dirty(address.buffer);
    if (was_clean && !can_log())
        return Write::needs_xid;
    if (was_clean)
        MarkBufferDirty(address.buffer);

    const XLogRecPtr lsn = PageGetLSN(locked.page);
    const std::int64_t left = positions_left(locked.data->log_cnt, lsn);
    const std::int64_t step = saturating_sub(raw(position), locked.data->last_value);
    const bool compares = was_clean || !pg::kIsMarkedOnlyByChanges;
    if (!is_record_due(left, step, compares && lsn <= GetRedoRecPtr())) {
        set_tuple(locked, position, encode_lease(lsn, left - step));
        return Write::done;
    }
    if (!can_log())
        return Write::needs_xid;
    log_horizon(locked, address, position, max_value);
    return Write::done;
}

/*
 * Writes the position of an advance, as do_setval() does: always logged, without a lease, and with
 * the log_cnt of a tuple that was set. So the next draw paces if that position is in the past.
 */
Write write_advanced(LockedPage locked, const PageAddress& address, Position position)
{
    if (address.needs_wal && !can_log())
        return Write::needs_xid;
    START_CRIT_SECTION();
    MarkBufferDirty(address.buffer);
    set_tuple(locked, position, kLogCountOfSet);
    if (address.needs_wal)
        log_tuple(locked, address);
    END_CRIT_SECTION();
    return Write::done;
}

/*
 * Inside a burst the cheap clock will do: where the position is ahead of any time that the exact
 * clock can show, and within the lead by the cheap one, the decision is the same by either.
 */
UnixMs time_for(const Stored& stored, const Limits& limits)
{
    const UnixMs tick = clock::at_last_tick();
    const std::int64_t lead = raw(ms_of(Position{stored.value})) - raw(tick);
    if (lead > clock::kTickMs && lead < limits.max_lead)
        return tick;
    return clock::now();
}

} // namespace

DrawResult draw_positions(PageAddress& address, std::int64_t wanted, const Limits& limits,
                          const PageVersion* waited_at)
{
    const LockedPage locked = lock_page(address);
    const Stored stored = stored_in(locked);
    DrawResult result;
    result.version = {stored.value, PageGetLSN(locked.page)};
    result.now = time_for(stored, limits);
    const bool has_waited = waited_at != nullptr && waited_at->value == result.version.value &&
                            waited_at->lsn == result.version.lsn;

    result.draw = decide_draw(stored, result.now, wanted, limits, has_waited);
    Write write = Write::done;
    if (result.draw.verdict == Verdict::issue)
        write = write_drawn(locked, address, last_position(result.draw), limits.max_value);
    result.needs_xid = write == Write::needs_xid;
    result.record = last_record(locked, address);
    unlock_page(address);
    return result;
}

AdvanceResult advance_position(PageAddress& address, Id past, const Limits& limits)
{
    const LockedPage locked = lock_page(address);
    const UnixMs now = clock::now();
    const Stored stored = stored_in(locked);
    const Advance advance = decide_advance(stored, past, limits);
    Write write = Write::done;
    if (advance.verdict == AdvanceVerdict::raise)
        write = write_advanced(locked, address, advance.position);
    /* Where another session has put the position there, this is that session's record. */
    const XLogRecPtr record = last_record(locked, address);
    unlock_page(address);
    return {advance, stored.value, now, write == Write::needs_xid, record};
}

} // namespace snowflake
