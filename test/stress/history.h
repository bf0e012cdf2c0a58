/* What a client saw: every ID in the order of its arrival, and when each statement was under way.
 */
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

namespace stress
{

using Id = std::int64_t;

/*
 * Nanoseconds of CLOCK_MONOTONIC: one scale for all threads of this process, and no step of the
 * wall clock, which is the very thing that IDs are made of, can bend it.
 */
using Instant = std::int64_t;

/*
 * A statement was executed at some time in [sent, seen], and made the IDs [first, first + count).
 * It is durable from the moment at which the client saw its transaction committed. IDs that were
 * only seen have another promise: the clock protects them across a crash, not the WAL. So have
 * those that a server made after its last WAL that a standby or a backup has.
 */
struct Statement {
    Instant sent;
    Instant seen;
    std::size_t first; /* an index into History::ids */
    std::size_t count;
    bool durable = true;
};

struct History {
    std::vector<Id> ids;
    std::vector<Statement> statements;
};

} // namespace stress
