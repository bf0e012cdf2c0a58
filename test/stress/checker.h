/*
 * Finds duplicates and violations of order in what the clients saw. It knows neither the server nor
 * the generator, so that the self-test can give it histories with a known fault.
 *
 * IDs that were seen but never committed are counted apart. Repeating them is no fault if the clock
 * stepped back across a crash; otherwise it is one.
 */
#pragma once

#include "history.h"

#include <algorithm>
#include <limits>
#include <vector>

namespace stress
{

struct Findings {
    std::size_t ids = 0;
    std::size_t duplicates = 0;         /* IDs that repeat an earlier one */
    std::size_t session_inversions = 0; /* IDs not greater than the session's previous one */
    std::size_t late_ids = 0;           /* IDs not above one seen before their statement was sent */
    std::vector<Id> examples;           /* some of the duplicates */

    /* The same, if the earlier ID was only seen and not committed. */
    std::size_t duplicates_of_seen = 0;
    std::size_t late_after_seen = 0;

    bool clean() const
    {
        return duplicates == 0 && session_inversions == 0 && late_ids == 0 &&
               duplicates_of_seen == 0 && late_after_seen == 0;
    }
};

constexpr std::size_t kExamples = 5;

/* Bytes in a history and in check(): the ID and its sorted copy; the statement and two references
 * to it. */
constexpr std::size_t kBytesOfId = 2 * sizeof(Id);
constexpr std::size_t kBytesOfStatement = sizeof(Statement) + 4 * sizeof(void*);

inline std::vector<Id> sorted_ids(const std::vector<History>& histories)
{
    std::size_t count = 0;
    for (const History& history : histories)
        count += history.ids.size();
    std::vector<Id> ids;
    ids.reserve(count);
    for (const History& history : histories)
        ids.insert(ids.end(), history.ids.begin(), history.ids.end());
    std::sort(ids.begin(), ids.end());
    return ids;
}

/* The IDs that occur more than once, each of them once. */
inline std::vector<Id> repeated_ids(const std::vector<Id>& sorted)
{
    std::vector<Id> repeated;
    for (std::size_t i = 1; i < sorted.size(); ++i) {
        if (sorted[i] == sorted[i - 1] && (repeated.empty() || repeated.back() != sorted[i]))
            repeated.push_back(sorted[i]);
    }
    return repeated;
}

/*
 * An ID that was seen n times counts as n - 1 duplicates. Each occurrence repeats the one that was
 * seen just before it; whether that one is durable decides which counter it adds to.
 */
inline void find_duplicates(const std::vector<History>& histories, Findings& findings)
{
    const std::vector<Id> sorted = sorted_ids(histories);
    findings.ids = sorted.size();
    const std::vector<Id> repeated = repeated_ids(sorted);

    struct Occurrence {
        Id id;
        Instant seen;
        bool durable;
    };
    std::vector<Occurrence> occurrences;
    for (const History& history : histories) {
        if (repeated.empty())
            break;
        for (const Statement& statement : history.statements) {
            for (std::size_t i = statement.first; i < statement.first + statement.count; ++i) {
                const Id id = history.ids[i];
                if (std::binary_search(repeated.begin(), repeated.end(), id))
                    occurrences.push_back({id, statement.seen, statement.durable});
            }
        }
    }
    std::sort(occurrences.begin(), occurrences.end(), [](const auto& a, const auto& b) {
        return a.id != b.id ? a.id < b.id : a.seen < b.seen;
    });
    for (std::size_t i = 1; i < occurrences.size(); ++i) {
        const Occurrence& earlier = occurrences[i - 1];
        if (earlier.id == occurrences[i].id)
            ++(earlier.durable ? findings.duplicates : findings.duplicates_of_seen);
    }
    findings.examples.assign(repeated.begin(),
                             repeated.begin() +
                                 static_cast<std::ptrdiff_t>(std::min(kExamples, repeated.size())));
}

inline void find_session_inversions(const std::vector<History>& histories, Findings& findings)
{
    for (const History& history : histories) {
        for (std::size_t i = 1; i < history.ids.size(); ++i)
            findings.session_inversions += history.ids[i] <= history.ids[i - 1] ? 1 : 0;
    }
}

/*
 * Between sessions, order is promised only for statements that do not overlap: if a statement was
 * sent after another one's result was seen, its IDs must be greater. Statements that overlap may
 * draw in either order.
 *
 * The statements are visited in the order of `sent`. Those whose result had been seen by then are a
 * growing prefix of the statements in the order of `seen`, and only the largest ID of that prefix
 * matters. So two sorts and one pass replace the comparison of all pairs.
 */
inline void find_late_ids(const std::vector<History>& histories, Findings& findings)
{
    struct Sent {
        const History* history;
        const Statement* statement;
        std::deque<Id>::const_iterator begin() const
        {
            return history->ids.begin() + static_cast<std::ptrdiff_t>(statement->first);
        }
        std::deque<Id>::const_iterator end() const
        {
            return begin() + static_cast<std::ptrdiff_t>(statement->count);
        }
    };
    std::size_t count = 0;
    for (const History& history : histories)
        count += history.statements.size();
    std::vector<Sent> by_sent;
    by_sent.reserve(count);
    for (const History& history : histories) {
        for (const Statement& statement : history.statements)
            by_sent.push_back({&history, &statement});
    }
    std::vector<Sent> by_seen = by_sent;
    std::sort(by_sent.begin(), by_sent.end(),
              [](const Sent& a, const Sent& b) { return a.statement->sent < b.statement->sent; });
    std::sort(by_seen.begin(), by_seen.end(),
              [](const Sent& a, const Sent& b) { return a.statement->seen < b.statement->seen; });

    /* The smallest bigint is never an ID, so no ID is late before another one was seen. */
    Id largest_durable = std::numeric_limits<Id>::min();
    Id largest_seen = largest_durable;
    auto seen = by_seen.begin();
    for (const Sent& sent : by_sent) {
        /* Strictly less: equal readings do not tell which came first. */
        for (; seen != by_seen.end() && seen->statement->seen < sent.statement->sent; ++seen) {
            if (seen->statement->count == 0)
                continue;
            const Id largest = *std::max_element(seen->begin(), seen->end());
            largest_seen = std::max(largest_seen, largest);
            if (seen->statement->durable)
                largest_durable = std::max(largest_durable, largest);
        }
        for (const Id id : sent) {
            if (id <= largest_durable)
                ++findings.late_ids;
            else if (id <= largest_seen)
                ++findings.late_after_seen;
        }
    }
}

inline Findings check(const std::vector<History>& histories)
{
    Findings findings;
    find_duplicates(histories, findings);
    find_session_inversions(histories, findings);
    find_late_ids(histories, findings);
    return findings;
}

} // namespace stress
