#include "sequence_page.h"

#include "clock.h"
#include "kept_position.h"

namespace snowflake
{
namespace
{

/* As in commands/sequence.c, which keeps both to itself. */
constexpr std::uint32_t kSequenceMagic = 0x1717;
struct SequenceMagic {
    std::uint32_t magic;
};

/* A sequence's tuple, and where the position is kept in it a second time: see kept_position.h. */
constexpr Size kTupleLength =
    MAXALIGN(SizeofHeapTupleHeader) + offsetof(FormData_pg_sequence_data, is_called) + sizeof(bool);
constexpr Size kLengthWithKept = kTupleLength + kKeptBytes;
static_assert(sizeof(FormData_pg_sequence_data) ==
                  MAXALIGN(offsetof(FormData_pg_sequence_data, is_called) + sizeof(bool)),
              "is_called is the last column");
static_assert(MAXALIGN(kTupleLength) == MAXALIGN(kLengthWithKept),
              "the item takes no more of the page: so it is where types are aligned to 8 bytes");

struct LockedPage {
    Buffer buffer;
    Page page;
    ItemId item;
    HeapTupleHeader tuple;
    Form_pg_sequence_data data;
};

/*
 * SELECT FOR UPDATE on a sequence could once leave an XID in its tuple's xmax, which ends in
 * failing clog lookups. read_seq_tuple() clears it like a hint bit, unlogged; so do we.
 */
void clear_stray_xmax(const LockedPage& locked)
{
    if (HeapTupleHeaderGetRawXmax(locked.tuple) == InvalidTransactionId)
        return;
    HeapTupleHeaderSetXmax(locked.tuple, InvalidTransactionId);
    locked.tuple->t_infomask &= static_cast<std::uint16_t>(~HEAP_XMAX_COMMITTED);
    locked.tuple->t_infomask |= HEAP_XMAX_INVALID;
    MarkBufferDirtyHint(locked.buffer, true);
}

/* The counterpart of read_seq_tuple() in commands/sequence.c. */
LockedPage lock_page(PageAddress& address)
{
    LockedPage locked;
    locked.buffer = page_pin::pin(address);
    LockBuffer(locked.buffer, BUFFER_LOCK_EXCLUSIVE);
    locked.page = BufferGetPage(locked.buffer);

    const auto* special =
        reinterpret_cast<const SequenceMagic*>(PageGetSpecialPointer(locked.page));
    if (special->magic != kSequenceMagic) /* a broken page: nothing that a caller can provoke */
        elog(ERROR, "bad magic number in sequence with OID %u: %08X", address.relation,
             special->magic);

    locked.item = PageGetItemId(locked.page, FirstOffsetNumber);
    locked.tuple = reinterpret_cast<HeapTupleHeader>(PageGetItem(locked.page, locked.item));
    locked.data = reinterpret_cast<Form_pg_sequence_data>(reinterpret_cast<char*>(locked.tuple) +
                                                          locked.tuple->t_hoff);
    clear_stray_xmax(locked);
    return locked;
}

/* The pin stays: see page_pin.h. */
void unlock_page(const LockedPage& locked)
{
    LockBuffer(locked.buffer, BUFFER_LOCK_UNLOCK);
}

Stored stored_in(const LockedPage& locked)
{
    return {Position{locked.data->last_value}, locked.data->is_called};
}

KeptBytes& kept_bytes(const LockedPage& locked)
{
    return *reinterpret_cast<KeptBytes*>(reinterpret_cast<char*>(locked.tuple) + kTupleLength);
}

bool has_kept(const LockedPage& locked)
{
    return ItemIdGetLength(locked.item) >= kLengthWithKept;
}

Position kept_in(const LockedPage& locked)
{
    return has_kept(locked) ? read_kept(kept_bytes(locked)) : kNoneKept;
}

/* Only where all of the tuple is logged, or nothing is: replay must find the same length. */
void make_room_for_kept(const LockedPage& locked)
{
    if (!has_kept(locked))
        ItemIdSetNormal(locked.item, ItemIdGetOffset(locked.item), kLengthWithKept);
}

void set_tuple(const LockedPage& locked, Position position, std::int64_t log_count)
{
    locked.data->last_value = raw(position);
    locked.data->is_called = true;
    locked.data->log_cnt = log_count;
    if (has_kept(locked))
        write_kept(position, kept_bytes(locked));
}

/*
 * The WAL record of nextval(): the whole tuple, as it shall stand after a crash. The position in it
 * is the horizon, a lease ahead of `position`; until the page passes it, no other record is needed.
 *
 * The tuple takes the horizon before XLogInsert() and the real values after it. Nobody sees the
 * first: whoever reads the page, a checkpoint among them, waits for our exclusive lock. And a full
 * page image that XLogInsert() may take (wal_consistency_checking) then equals what replay makes.
 */
void log_position(const LockedPage& locked, const PageAddress& address, Position position,
                  Position max_value, CoreUse core_use)
{
    const std::int64_t room = saturating_sub(raw(max_value), raw(position));
    const std::int64_t lease = room < kLeasePositions ? room : kLeasePositions;

    START_CRIT_SECTION();

    XLogBeginInsert();
    XLogRegisterBuffer(0, locked.buffer, REGBUF_WILL_INIT);

    make_room_for_kept(locked);
    /* After replay the page has no lease: what was promised under this record is used up. */
    set_tuple(locked, Position{raw(position) + lease}, encode_no_lease(core_use));

    xl_seq_rec record;
    pg::set_locator(&record, address.file);
    XLogRegisterData(reinterpret_cast<char*>(&record), sizeof(record));
    XLogRegisterData(reinterpret_cast<char*>(locked.tuple),
                     static_cast<pg::WalDataLength>(ItemIdGetLength(locked.item)));

    /* In a variable of its own: PageSetLSN is a macro that evaluates its argument twice. */
    const XLogRecPtr lsn = XLogInsert(RM_SEQ_ID, XLOG_SEQ_LOG);
    PageSetLSN(locked.page, lsn);

    set_tuple(locked, position, encode_log_count(lsn, lease, core_use));

    END_CRIT_SECTION();
}

enum class Write { done, needs_xid };

/*
 * Writes a position that is not less than the stored one.
 *
 * MarkBufferDirty() stands before GetRedoRecPtr(), and the order is what a checkpoint cannot slip
 * through. A checkpoint first publishes its redo pointer, then collects the dirty buffers. If we
 * read the old pointer, we were dirty before it was published, and so before it collects: it writes
 * our page, and waits for our lock to do it. If we read the new one, the page's LSN is before it,
 * and we log. nextval() compares first and dirties afterwards; a checkpoint in between neither
 * writes the page nor leaves a record after its redo pointer, and a crash takes the values back.
 *
 * A record is due when
 *  - the lease is over, was never given, or is not this page's (see lease.h). That goes for a step
 *    of 0, too, for which replay of what was logged so far would still be wrong: setval() has left
 *    its value to be made (is_called), or snowflake_advance() keeps it (kept_position.h);
 *  - the page's LSN is at or before the redo pointer: a replay from there would not see the record.
 * A due record needs a transaction ID, so that our commit flushes it (RecordTransactionCommit) and
 * waits for a synchronous standby. To assign one takes locks and memory: not under the page's lock.
 */
Write write_position(const LockedPage& locked, const PageAddress& address, Position position,
                     Position max_value, CoreUse core_use)
{
    const Stored stored = stored_in(locked);
    MarkBufferDirty(locked.buffer);

    if (!address.needs_wal) {
        make_room_for_kept(locked);
        set_tuple(locked, position, encode_no_lease(core_use));
        return Write::done;
    }

    const XLogRecPtr lsn = PageGetLSN(locked.page);
    const std::int64_t left = positions_left(locked.data->log_cnt, lsn);
    const std::int64_t step = saturating_sub(raw(position), raw(stored.position));
    if (left > 0 && step <= left && lsn > GetRedoRecPtr()) {
        set_tuple(locked, position, encode_log_count(lsn, left - step, core_use));
        return Write::done;
    }

    if (!TransactionIdIsValid(GetTopTransactionIdIfAny()))
        return Write::needs_xid;
    log_position(locked, address, position, max_value, core_use);
    return Write::done;
}

/*
 * In a burst the position is ahead of the clock, and the exact time does not matter: where it is
 * ahead of whatever the clock can say, and within the lead by the lower of both readings, the rule
 * gives the same answer for either, and the cheap one will do.
 */
UnixMs time_for(Stored stored, const Limits& limits)
{
    const UnixMs tick = clock::at_last_tick();
    const std::int64_t lead = raw(ms_of(stored.position)) - raw(tick);
    if (lead > clock::kTickMs && lead < limits.max_lead)
        return tick;
    return clock::now();
}

/* Writes the position, releases the page, and says what came of it. */
void finish(const LockedPage& locked, const PageAddress& address, Position position,
            Position max_value, CoreUse core_use, PageResult& result)
{
    result.needs_xid =
        write_position(locked, address, position, max_value, core_use) == Write::needs_xid;
    result.lease = address.needs_wal ? PageGetLSN(locked.page) : InvalidXLogRecPtr;
    unlock_page(locked);
}

} // namespace

void draw_positions(PageAddress& address, std::int64_t wanted, const Limits& limits,
                    const Position* paced_at, Share& share, PageResult& result)
{
    const LockedPage locked = lock_page(address);
    const Stored found = stored_in(locked);
    const UnixMs now = time_for(found, limits);
    const Stored stored = resume(found, kept_in(locked), now, limits.max_lead);

    const CoreUse core_use = core_use_of(locked.data->log_cnt, found.is_called, now);
    const bool beside_core = core_use != CoreUse::none;
    const std::int64_t allowed = beside_core ? share.left_at(now, wanted) : wanted;

    const bool paced = paced_at != nullptr && *paced_at == stored.position;
    result.stored = stored;
    result.now = now;
    const bool follows_clock = beside_core || address.may_be_lost;
    result.decision = next(stored, now, allowed, limits, {paced, follows_clock});
    result.needs_xid = false;
    if (result.decision.verdict == Verdict::issue && allowed == 0)
        result.decision.verdict = Verdict::pace;
    if (result.decision.verdict != Verdict::issue) {
        unlock_page(locked);
        return;
    }
    finish(locked, address, last_position(result.decision), limits.max_value, core_use, result);
    if (beside_core && !result.needs_xid)
        share.take(now, result.decision.count);
}

void raise_position(PageAddress& address, Position floor, const Limits& limits, PageResult& result)
{
    const LockedPage locked = lock_page(address);
    const Stored stored = stored_in(locked);
    const Position kept = kept_in(locked);
    const UnixMs now = clock::now();

    const bool is_stored = stored.is_called ? stored.position >= floor : stored.position > floor;
    const bool is_there = is_stored && (kept >= floor || floor > kMaxKept);
    const Position target = is_stored ? stored.position : raised(floor, kept, now, limits.max_lead);
    const Verdict verdict =
        is_there || target <= limits.max_value ? Verdict::issue : Verdict::past_max_value;

    result.stored = stored;
    result.now = now;
    result.decision = {verdict, target, 0, raw(ms_of(target)) - raw(now)};
    result.needs_xid = false;
    /* Where it is there already, by another session's hand, that one's record must last. */
    result.lease = address.needs_wal ? PageGetLSN(locked.page) : InvalidXLogRecPtr;
    if (is_there || verdict != Verdict::issue) {
        unlock_page(locked);
        return;
    }
    const CoreUse core_use = core_use_of(locked.data->log_cnt, stored.is_called, now);
    finish(locked, address, target, limits.max_value, core_use, result);
}

} // namespace snowflake
