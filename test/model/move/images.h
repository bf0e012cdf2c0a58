/* Parts of a statement: commits, and the functions of cli/sql/fence.sql. */
#pragma once

#include "findings.h"
#include "guards.h"
#include "steps.h"

#include <cstdlib>
#include <iostream>

namespace model::moves
{

/* A position as a bit of a set of IDs. */
inline Byte bit_of(Byte position)
{
    if (position <= kFirst || position > kFirst + 8) {
        std::cerr << "the model has no room for position " << int(position) << '\n';
        std::abort();
    }
    return static_cast<Byte>(1U << (position - kFirst - 1));
}

/* All WAL of the server. IDs that were drawn before it are durable. */
inline void flush(State& state, std::size_t server)
{
    Server& flushed = state.servers[server];
    flushed.disk = flushed.now;
    state.ids |= flushed.seen;
    flushed.seen = 0;
}

/* A commit of the command. */
inline void commit(State& state, std::size_t server, const Guards& guards)
{
    if (guards.flushes)
        flush(state, server);
}

inline void write_wal(Server& server, Entry entry)
{
    if (!server.slot.is_there)
        return; /* nobody decodes it */
    if (server.now.length == kEntries) {
        std::cerr << "the model has no room for another entry of the WAL\n";
        std::abort();
    }
    server.now.wal[server.now.length++] = entry;
}

/* The schemas of the shard and of its record. */
inline void drop_shard(Image& image)
{
    Image left = {};
    left.has_publication = image.has_publication;
    left.subscription = image.subscription;
    left.applied = image.applied;
    left.length = image.length;
    left.wal = image.wal;
    image = left;
}

/* drop_state(): the triggers go, too. */
inline void drop_record(Image& image)
{
    image.record = {};
    image.has_triggers = image.is_closed = image.kept = image.noted = 0;
    image.marker = image.marker_position = 0;
}

/* release_sequences() */
inline void release(Image& image, const Guards& guards)
{
    if (image.kept == 0 || (guards.releases_closed_alone && !image.is_at_end))
        return;
    image.position = image.kept;
    image.is_at_end = image.kept == kEnd;
}

/* keep_positions(). kEnd is the position of a sequence that is at its end. */
inline void keep(Image& image, Byte position, const Guards& guards)
{
    if (image.kept == 0 || position != kEnd || !guards.keeps_first_position)
        image.kept = position;
}

inline void open_copy(Image& target, const Guards& guards)
{
    if (guards.sets_positions) {
        if (target.marker_position != 0) /* else it was not awaited */
            target.position = target.marker_position;
        target.is_at_end = target.position == kEnd;
    } else if (target.kept == 0) {
        target.is_at_end = 0;
    }
    target.is_closed = target.kept = 0;
    target.noted = target.length;
    if (guards.opens_with_record)
        target.record.step = RecordStep::open;
}

inline void become_reverse(Record& record, RecordStep step)
{
    record = {step, 0, false, true, false, false, false};
}

} // namespace model::moves
