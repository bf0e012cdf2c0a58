/*
 * One draw and its commit, in the steps that other sessions can see. A step touches shared memory
 * once, or holds the page's lock meanwhile.
 *
 *   begin    lock_page(), the clock, decide_draw()       draw_positions() in page.cpp
 *   dirty    MarkBufferDirty(), if the page is clean     write_drawn()
 *   compare  is_record_due()                             write_drawn()
 *   write    XLogInsert() if due, the tuple, unlock      log_horizon()
 *   see      make_durable(), the client sees the ID      durability.cpp
 *   commit   RecordTransactionCommit()                   the server's xact.c
 *
 * decide_draw(), is_record_due() and the lease are the extension's own functions. A guard is taken
 * out by changing their arguments, or by leaving out a step.
 */
#pragma once

#include "guards.h"
#include "properties.h"

namespace model
{

using snowflake::Draw;
using snowflake::Limits;
using snowflake::Stored;
using snowflake::Verdict;

constexpr Limits kLimits = {1000, 3600000, snowflake::Epoch{0}, snowflake::kMaxPosition};

inline Stored stored_in(const Page& page, const Guards& guards)
{
    const bool is_set = page.tuple.log_count == snowflake::kLogCountOfSet;
    return {page.tuple.position, page.tuple.is_called != 0, is_set && guards.paces_after_set};
}

inline Position last_of(const Session& session)
{
    return Position{session.first + session.count - 1};
}

inline void set_tuple(Page& page, Position position, std::int64_t log_count)
{
    page.tuple = {small(raw(position)), small(log_count), true};
}

inline RecordNumber insert_record(Wal& wal, const Tuple& tuple)
{
    if (wal.inserted == kRecords) {
        std::cerr << "the model has no room for another record\n";
        std::abort();
    }
    wal.records[++wal.inserted] = tuple;
    return wal.inserted;
}

inline void unlock(State& state, std::size_t who)
{
    if (state.locked_by == who + 1)
        state.locked_by = 0;
}

inline bool can_begin(const State& state, std::size_t who, const Guards& guards)
{
    const Session& session = state.sessions[who];
    if (session.stage != Stage::again && (session.stage != Stage::idle || state.draws_left == 0))
        return false;
    return !guards.exclusive_lock || state.locked_by == 0;
}

/* Where the clock runs on, a session that has paced reads a later millisecond than before. */
inline Small earliest_reading(const State& state, const Session& session)
{
    return session.waited_value != 0 ? std::max(state.earliest, session.waited_now + 1)
                                     : state.earliest;
}

inline void begin(State& state, std::size_t who, Small wanted, Small now, const Guards& guards)
{
    Session& session = state.sessions[who];
    if (session.stage == Stage::idle) {
        --state.draws_left;
        session.wanted = wanted;
    }
    const bool is_same_page = session.waited_value == state.page.tuple.position &&
                              (session.waited_lsn == state.page.lsn || !guards.pace_compares_lsn);
    const Draw draw = decide_draw(stored_in(state.page, guards), UnixMs{now}, session.wanted,
                                  kLimits, is_same_page);
    if (draw.verdict == Verdict::pace) {
        session.stage = Stage::again;
        session.waited_now = now;
        session.waited_value = state.page.tuple.position;
        session.waited_lsn = state.page.lsn;
        return;
    }
    if (draw.verdict != Verdict::issue) {
        std::cerr << "the model's clocks and limits leave no room for a refusal\n";
        std::abort();
    }
    session.stage = Stage::reading;
    session.now = now;
    session.first = small(raw(draw.first));
    session.count = small(draw.count);
    if (guards.exclusive_lock)
        state.locked_by = static_cast<std::uint8_t>(who + 1);
}

inline bool can_dirty(const Session& session, const Guards& guards)
{
    return session.stage == Stage::reading && session.is_dirtied == Dirtied::no &&
           guards.marks_dirty && (guards.dirty_before_redo || session.is_compared);
}

/* draw() in generator.cpp: an XID is assigned without the lock, and the draw starts anew. */
inline void take_xid(State& state, std::size_t who)
{
    Session& session = state.sessions[who];
    session.has_xid = true;
    session.stage = Stage::again;
    session.is_dirtied = Dirtied::no;
    session.is_compared = 0;
    session.now = session.first = session.count = 0;
    unlock(state, who);
}

inline void dirty(State& state, std::size_t who, const Guards& guards)
{
    Session& session = state.sessions[who];
    const bool was_dirty = state.is_dirty != 0;
    if (!was_dirty && state.needs_wal && !session.has_xid && guards.record_takes_xid &&
        guards.xid_before_dirty) {
        take_xid(state, who);
        return;
    }
    state.is_dirty = true;
    session.is_dirtied = was_dirty ? Dirtied::was_dirty : Dirtied::was_clean;
}

inline bool can_compare(const Session& session, const Guards& guards)
{
    return session.stage == Stage::reading && !session.is_compared &&
           (session.is_dirtied != Dirtied::no || !guards.dirty_before_redo || !guards.marks_dirty);
}

inline std::int64_t left_on(const Page& page, const Guards& guards)
{
    if (!guards.lease_has_tag && page.tuple.log_count < 0)
        return -(page.tuple.log_count + 1) & ((1 << snowflake::kLeftBits) - 1);
    return snowflake::positions_left(page.tuple.log_count, lsn_of(page.lsn));
}

inline std::int64_t step_of(const State& state, const Session& session)
{
    return raw(last_of(session)) - state.page.tuple.position;
}

inline bool must_log(const State& state, const Session& session, const Guards& guards)
{
    if (!state.needs_wal)
        return false;
    const std::int64_t left = left_on(state.page, guards);
    const std::int64_t step = step_of(state, session);
    const bool is_free = step == 0 && !guards.zero_step_needs_lease;
    const bool compares =
        session.is_dirtied != Dirtied::was_dirty || (state.compares_dirty && guards.compares_dirty);
    const bool is_before_redo =
        compares && state.page.lsn <= state.wal.redo && guards.compares_redo;
    return snowflake::is_record_due(is_free ? 1 : left, guards.lease_has_end ? step : 0,
                                    is_before_redo);
}

inline void compare(State& state, std::size_t who, const Guards& guards)
{
    Session& session = state.sessions[who];
    session.is_compared = true;
    if (!must_log(state, session, guards))
        return;

    if (guards.record_takes_xid && !session.has_xid) {
        take_xid(state, who);
        return;
    }
    session.logs = true;
}

inline bool can_write(const Session& session, const Guards& guards)
{
    return session.stage == Stage::reading && session.is_compared &&
           (session.is_dirtied != Dirtied::no || !guards.marks_dirty);
}

inline void log_horizon(State& state, Session& session, const Guards& guards)
{
    const std::int64_t position = raw(last_of(session));
    const std::int64_t horizon =
        position + (guards.record_is_ahead ? snowflake::kLeasePositions : 0);
    Page& page = state.page;
    /* A record cannot hold its own LSN: a lease in it would carry that of the page before it. */
    set_tuple(page, Position{horizon},
              guards.record_has_no_lease
                  ? snowflake::kNoLease
                  : snowflake::encode_lease(lsn_of(page.lsn), snowflake::kLeasePositions));
    page.lsn = insert_record(state.wal, page.tuple);
    set_tuple(page, Position{position},
              snowflake::encode_lease(lsn_of(page.lsn), snowflake::kLeasePositions));
    session.has_record = true;
}

inline void write_without_record(State& state, const Session& session, const Guards& guards)
{
    Page& page = state.page;
    if (!state.needs_wal && guards.no_lease_without_wal) {
        set_tuple(page, last_of(session), snowflake::kNoLease);
        return;
    }
    const std::int64_t left = left_on(page, guards);
    const std::int64_t step = step_of(state, session);
    const std::int64_t kept = state.needs_wal ? left : snowflake::kLeasePositions;
    set_tuple(page, last_of(session),
              snowflake::encode_lease(lsn_of(page.lsn), step <= left ? left - step : kept));
}

inline Finding write(State& state, std::size_t who, const Guards& guards)
{
    Session& session = state.sessions[who];
    const Small last = small(raw(last_of(session)));
    const Finding finding = finding_of(state.seen, session.first, last, session.now);
    note_drawn(state.seen, last);

    if (session.logs)
        log_horizon(state, session, guards);
    else
        write_without_record(state, session, guards);
    session.record = state.needs_wal ? state.page.lsn : RecordNumber{0};
    session.stage = Stage::drawn;
    session.wanted = session.waited_value = session.waited_now = 0;
    session.waited_lsn = 0;
    session.is_dirtied = Dirtied::no;
    session.is_compared = session.logs = 0;
    unlock(state, who);
    return finding;
}

inline void flush_up_to(Wal& wal, RecordNumber record)
{
    wal.flushed = std::max(wal.flushed, record);
}

/* The empty record is only noted: it comes after the draw's record, and replay skips it. */
inline void make_durable(State& state, Session& session, const Guards& guards)
{
    if (session.record == 0 || session.record <= state.wal.flushed || !guards.flushes_others_lease)
        return;
    const bool is_ahead = raw(ms_of(last_of(session))) > session.now;
    if (is_ahead && guards.flushes_ahead)
        flush_up_to(state.wal, session.record);
    if (session.has_xid && session.has_record)
        return;
    session.has_xid = session.has_xid || guards.commit_takes_xid;
    session.has_record = session.has_record || guards.commit_has_record;
}

inline void see(State& state, std::size_t who, const Guards& guards)
{
    Session& session = state.sessions[who];
    make_durable(state, session, guards);
    const Small last = small(raw(last_of(session)));
    note_seen(state.seen, session.first, last, session.now);
    session.last_seen = std::max(session.last_seen, last);
    session.stage = Stage::idle;
    session.now = session.first = session.count = 0;
    session.record = 0;
}

inline bool can_commit(const Session& session)
{
    return session.stage == Stage::idle && session.last_seen != 0;
}

/* The commit record is the last one at that time: flushing it flushes all. */
inline void commit(State& state, std::size_t who)
{
    Session& session = state.sessions[who];
    if (session.has_xid && session.has_record)
        flush_up_to(state.wal, state.wal.inserted);
    note_committed(state.seen, session.last_seen);
    session.last_seen = 0;
    session.has_xid = session.has_record = false;
}

} // namespace model
