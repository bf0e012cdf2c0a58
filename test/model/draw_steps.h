/*
 * One draw and its commit, in the steps in which the server's code takes them. A step is what
 * others cannot see half done: it touches what is shared once, or holds the page's lock over the
 * rest.
 *
 *   begin    lock_page(), the clock, next()              draw_positions() in sequence_page.cpp
 *   dirty    MarkBufferDirty()                           write_position()
 *   compare  GetRedoRecPtr(), the lease; or an XID first write_position(), draw() in generator.cpp
 *   write    XLogInsert() if due, the tuple, unlock      log_position(), finish()
 *   see      make_durable(), the client sees the ID      durability.cpp
 *   commit   RecordTransactionCommit()                   the server's xact.c
 *
 * The rule, the lease with its tag and the share beside nextval() are the server's own headers;
 * what stands in the .cpp files among PostgreSQL's calls is repeated here, line by line.
 */
#pragma once

#include "beside_core.h"
#include "guards.h"
#include "properties.h"

namespace model
{

using snowflake::CoreUse;
using snowflake::Decision;
using snowflake::Limits;
using snowflake::Share;
using snowflake::Stored;
using snowflake::Verdict;

constexpr Limits kLimits = {1000, 3600000, UnixMs{0}, UnixMs{snowflake::kMaxAge},
                            Position{INT64_MAX}};

inline Stored stored_in(const Page& page)
{
    return {Position{page.tuple.position}, page.tuple.is_called != 0};
}

/* Where a draw goes on from. */
inline Stored resumed_from(const Page& page, UnixMs now, const Guards& guards)
{
    const Stored stored = stored_in(page);
    return guards.resumes_from_kept
               ? resume(stored, Position{page.tuple.kept}, now, kLimits.max_lead)
               : stored;
}

inline Position last_of(const Session& session)
{
    return Position{session.first + session.count - 1};
}

inline void set_tuple(Page& page, Position position, std::int64_t log_count)
{
    const Small value = small(raw(position));
    page.tuple = {value, small(log_count), true, value};
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

inline void begin(State& state, std::size_t who, Small wanted, Small now, const Guards& guards)
{
    Session& session = state.sessions[who];
    if (session.stage == Stage::idle) {
        --state.draws_left;
        session.wanted = wanted;
    }
    const Stored stored = resumed_from(state.page, UnixMs{now}, guards);
    const CoreUse core_use =
        core_use_of(state.page.tuple.log_count, stored_in(state.page).is_called, UnixMs{now});
    const bool beside_core = core_use != CoreUse::none;
    const Share share = {UnixMs{session.share_ms}, session.share_taken};
    const std::int64_t allowed =
        beside_core ? share.left_at(UnixMs{now}, session.wanted) : session.wanted;
    const bool paced = session.paced_at != 0 && session.paced_at == raw(stored.position);

    Decision decision = next(stored, UnixMs{now}, allowed, kLimits, {paced, beside_core});
    if (decision.verdict == Verdict::issue && allowed == 0)
        decision.verdict = Verdict::pace;
    if (decision.verdict == Verdict::pace) {
        session.stage = Stage::again;
        session.paced_at = small(raw(stored.position));
        return;
    }
    if (decision.verdict != Verdict::issue) {
        std::cerr << "the model's clocks and limits leave no room for a refusal\n";
        std::abort();
    }
    session.stage = Stage::reading;
    session.now = now;
    session.first = small(raw(decision.first));
    session.count = small(decision.count);
    session.core_use = static_cast<std::uint8_t>(core_use);
    if (guards.exclusive_lock)
        state.locked_by = static_cast<std::uint8_t>(who + 1);
}

inline bool can_dirty(const Session& session, const Guards& guards)
{
    return session.stage == Stage::reading && !session.is_dirtied && guards.marks_dirty &&
           (guards.dirty_before_redo || session.is_compared);
}

inline void dirty(State& state, std::size_t who)
{
    state.is_dirty = true;
    state.sessions[who].is_dirtied = true;
}

inline bool can_compare(const Session& session, const Guards& guards)
{
    return session.stage == Stage::reading && !session.is_compared &&
           (session.is_dirtied || !guards.dirty_before_redo || !guards.marks_dirty);
}

inline std::int64_t left_on(const Page& page, const Guards& guards)
{
    if (!guards.lease_has_tag && page.tuple.log_count < 0)
        return static_cast<std::int64_t>(snowflake::fields_of(page.tuple.log_count) &
                                         ((std::uint64_t{1} << snowflake::kLeftBits) - 1));
    return snowflake::positions_left(page.tuple.log_count, lsn_of(page.lsn));
}

inline std::int64_t step_of(const State& state, const Session& session)
{
    return raw(last_of(session)) - raw(stored_in(state.page).position);
}

inline bool is_record_due(const State& state, const Session& session, const Guards& guards)
{
    if (!state.needs_wal)
        return false;
    const std::int64_t left = left_on(state.page, guards);
    const bool has_lease = left > 0 || !guards.zero_step_needs_lease;
    const bool is_covered =
        guards.lease_has_end ? has_lease && step_of(state, session) <= left : left > 0;
    const bool is_after_redo = state.page.lsn > state.wal.redo || !guards.compares_redo;
    return !is_covered || !is_after_redo;
}

inline void compare(State& state, std::size_t who, const Guards& guards)
{
    Session& session = state.sessions[who];
    session.is_compared = true;
    if (!is_record_due(state, session, guards))
        return;

    if (guards.record_takes_xid && !session.has_xid) {
        session.has_xid = true;
        session.stage = Stage::again;
        session.is_dirtied = session.is_compared = session.core_use = 0;
        session.now = session.first = session.count = 0;
        unlock(state, who);
        return;
    }
    session.logs = true;
}

inline bool can_write(const Session& session, const Guards& guards)
{
    return session.stage == Stage::reading && session.is_compared &&
           (session.is_dirtied || !guards.marks_dirty);
}

inline void log_position(State& state, Session& session, const Guards& guards)
{
    const CoreUse core_use{session.core_use};
    const std::int64_t position = raw(last_of(session));
    const std::int64_t horizon =
        position + (guards.record_is_ahead ? snowflake::kLeasePositions : 0);
    Page& page = state.page;
    /* A record cannot know its own LSN: a lease in it would carry that of the page as it was. */
    set_tuple(
        page, Position{horizon},
        guards.record_has_no_lease
            ? snowflake::encode_no_lease(core_use)
            : snowflake::encode_log_count(lsn_of(page.lsn), snowflake::kLeasePositions, core_use));
    page.lsn = insert_record(state.wal, page.tuple);
    set_tuple(page, Position{position},
              snowflake::encode_log_count(lsn_of(page.lsn), snowflake::kLeasePositions, core_use));
    session.has_record = true;
}

inline void write_without_record(State& state, const Session& session, const Guards& guards)
{
    const CoreUse core_use{session.core_use};
    Page& page = state.page;
    const std::int64_t left = left_on(page, guards);
    const std::int64_t step = step_of(state, session);
    if (state.needs_wal)
        set_tuple(page, last_of(session),
                  snowflake::encode_log_count(lsn_of(page.lsn), step <= left ? left - step : left,
                                              core_use));
    else if (guards.no_lease_without_wal)
        set_tuple(page, last_of(session), snowflake::encode_no_lease(core_use));
    else
        set_tuple(page, last_of(session),
                  snowflake::encode_log_count(
                      lsn_of(page.lsn), step <= left ? left - step : snowflake::kLeasePositions,
                      core_use));
}

inline Finding write(State& state, std::size_t who, const Guards& guards)
{
    Session& session = state.sessions[who];
    const Small last = small(raw(last_of(session)));
    const Finding finding = finding_of(state.seen, session.first, last, session.now);
    note_drawn(state.seen, last);

    if (session.logs)
        log_position(state, session, guards);
    else
        write_without_record(state, session, guards);
    session.lease = state.needs_wal ? state.page.lsn : RecordNumber{0};
    if (session.core_use != 0) {
        Share share = {UnixMs{session.share_ms}, session.share_taken};
        share.take(UnixMs{session.now}, session.count);
        session.share_ms = small(raw(share.ms));
        session.share_taken = small(share.taken);
    }
    session.stage = Stage::drawn;
    session.wanted = session.paced_at = 0;
    session.is_dirtied = session.is_compared = session.logs = session.core_use = 0;
    unlock(state, who);
    return finding;
}

inline void flush_up_to(Wal& wal, RecordNumber record)
{
    wal.flushed = std::max(wal.flushed, record);
}

/* The empty record is only noted: it comes after the lease, and nothing is replayed from it. */
inline void make_durable(State& state, Session& session, const Guards& guards)
{
    if (session.lease == 0 || session.lease <= state.wal.flushed || !guards.flushes_others_lease)
        return;
    const bool leads = raw(ms_of(last_of(session))) > session.now;
    if (leads && guards.flushes_what_leads)
        flush_up_to(state.wal, session.lease);
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
    session.lease = 0;
}

inline bool can_commit(const Session& session)
{
    return session.stage == Stage::idle && session.last_seen != 0;
}

/* A commit record is the last one at that time: to flush it is to flush all. */
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
