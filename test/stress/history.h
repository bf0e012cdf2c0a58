/* What one client saw: every ID in the order of arrival, and the times of each statement. */
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>

namespace stress
{

using Id = std::int64_t;

/*
 * Nanoseconds of CLOCK_MONOTONIC: one scale for all threads of this process. Steps of the wall
 * clock, from which IDs are made, do not change it.
 */
using Instant = std::int64_t;

/*
 * A statement that was executed at some time in [sent, seen], and the IDs that it made. It is
 * durable if the client saw its transaction commit; the WAL protects durable IDs across a crash.
 * All other IDs are protected by the clock alone: those of open, rolled-back and asynchronous
 * transactions, and those that a server made after the last WAL that its standby or backup
 * received.
 */
struct Statement {
    Instant sent;
    Instant seen;
    std::size_t first; /* an index into History::ids */
    std::size_t count;
    bool durable = true;
};

/* Deques: a vector would double its memory, and delay its client meanwhile. */
struct History {
    std::deque<Id> ids;
    std::deque<Statement> statements;
};

} // namespace stress
