/* A step as a line of text. */
#pragma once

#include "actions.h"

#include <string>

namespace model
{

/* Milliseconds : counter. */
inline std::string text_of(Small position)
{
    return std::to_string(position >> 10) + ":" + std::to_string(position & 1023);
}

inline std::string block_text(Small first, Small count)
{
    return text_of(first) + (count > 1 ? ".." + text_of(first + count - 1) : "");
}

inline std::string number(std::int64_t value)
{
    return std::to_string(value);
}

inline std::string page_text(const Page& page, const Guards& guards)
{
    return text_of(page.tuple.position) + (page.tuple.is_called ? "" : " (not called)") + ", LSN " +
           number(page.lsn) + ", " + number(left_on(page, guards)) + " left";
}

inline std::string begin_text(const State& before, const Session& session, Small now,
                              const Guards& guards)
{
    const std::string read = std::string(guards.exclusive_lock ? "locks" : "reads") +
                             " the page: " + page_text(before.page, guards) + "; the clock says " +
                             number(now);
    return session.stage == Stage::again ? read + ": it has to wait"
                                         : read + ": " + block_text(session.first, session.count);
}

inline std::string compare_text(const State& before, const Session& session)
{
    const std::string seen = "reads the redo pointer: " + number(before.wal.redo) + "; ";
    if (!before.needs_wal)
        return seen + "the sequence needs no WAL";
    if (session.stage == Stage::again)
        return seen + "a record is due: unlocks, takes an XID, begins again";
    return seen + (session.logs ? "a record is due" : "no record is due");
}

inline std::string write_text(const State& before, const State& after, const Session& drawing)
{
    std::string text = "writes " + block_text(drawing.first, drawing.count);
    if (drawing.logs)
        text += " with record " + number(after.wal.inserted) + " (" +
                text_of(after.wal.records[after.wal.inserted].position) + ")";
    return text + (before.locked_by != 0 ? " and unlocks" : "");
}

inline std::string see_text(const State& before, const State& after, std::size_t who)
{
    const Session& was = before.sessions[who];
    const Session& is = after.sessions[who];
    std::string text;
    if (after.wal.flushed > before.wal.flushed)
        text += "flushes WAL up to " + number(after.wal.flushed) + ", ";
    if (is.has_xid && !was.has_xid)
        text += "takes an XID, ";
    if (is.has_record && !was.has_record)
        text += "writes an empty record, ";
    return text + "shows " + block_text(was.first, was.count) + " to its client";
}

inline std::string commit_text(const State& before, const State& after)
{
    return after.wal.flushed > before.wal.flushed
               ? "commits, and flushes WAL up to " + number(after.wal.flushed)
               : "commits, and flushes nothing; flushed is " + number(after.wal.flushed);
}

inline std::string copy_text(Copy copy, const State& after)
{
    const std::string record = " (record " + number(after.page.lsn) + ")";
    switch (copy) {
    case Copy::set_unlogged:
        return "SET UNLOGGED: a copy of the page without LSN";
    case Copy::set_logged:
        return "SET LOGGED: the page is copied and logged as it is" + record;
    case Copy::restart:
        return "RESTART: the page is copied, set to its start and logged" + record;
    case Copy::pages:
        return "CREATE DATABASE ... TEMPLATE: the page is copied and logged as it is" + record;
    case Copy::files:
        return "CREATE DATABASE ... TEMPLATE: the file is copied between two checkpoints";
    case Copy::end_of_skipped_wal:
        return "S1  commits, and logs the page as it is" + record;
    case Copy::synced_instead:
        return "S1  commits, and syncs the file";
    }
    return "";
}

inline std::string call_text(Call call)
{
    switch (call) {
    case Call::nextval:
        return "nextval()";
    case Call::setval_ahead:
    case Call::setval_back:
    case Call::setval_back_uncalled:
        return "setval()";
    case Call::advance:
    case Call::advance_into_past:
        return "snowflake_advance()";
    case Call::mark_dirty:
        return "pg_buffercache_mark_dirty()";
    }
    return "";
}

inline std::string step_text(const State& before, const State& after, Action action,
                             const World& world, const Guards& guards)
{
    const std::string who = "S" + number(action.who + 1) + "  ";
    const Session& session = after.sessions[action.who % kSessions];
    switch (action.kind) {
    case Kind::begin:
        return who + begin_text(before, session, world.clocks[action.clock], guards);
    case Kind::dirty:
        return who + "marks it dirty";
    case Kind::compare:
        return who + compare_text(before, session);
    case Kind::write:
        return who + write_text(before, after, before.sessions[action.who]);
    case Kind::see:
        return who + see_text(before, after, action.who);
    case Kind::commit:
        return who + commit_text(before, after);
    case Kind::flush:
        return "WAL is flushed up to " + number(after.wal.flushed);
    case Kind::write_page:
        return "the page is written to disk: " + page_text(after.disk, guards);
    case Kind::determine_redo:
        return "checkpoint: its redo pointer is " + number(after.next_redo);
    case Kind::publish_redo:
        return "checkpoint: everybody sees " + number(after.wal.redo);
    case Kind::collect:
        return std::string("checkpoint: finds the page ") + (after.is_dirty ? "dirty" : "clean");
    case Kind::finish_checkpoint:
        return "checkpoint: is done";
    case Kind::restart:
        return "CRASH and restart: " + page_text(after.page, guards);
    case Kind::promote:
        return "CRASH and promotion of a standby: " + page_text(after.page, guards);
    case Kind::copy:
        return copy_text(world.copies[action.who], after);
    case Kind::call:
        return call_text(world.calls[action.who]) + ": " + page_text(after.page, guards);
    }
    return "";
}

} // namespace model
