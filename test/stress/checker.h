/*
 * Looks for duplicates and for violations of order in what the clients saw. Pure: it knows neither
 * the server nor the generator, so that it can be shown histories with a known fault.
 *
 * What is promised for an ID goes by whether its transaction was seen to commit. A fault that only
 * takes back IDs that were seen and never committed is counted apart: it is none, where a clock
 * stepped back across a crash, and one where it did not.
 */
#pragma once

#include "history.h"

#include <algorithm>
#include <iterator>
#include <limits>

namespace stress
{

struct Findings {
    std::size_t ids = 0;
    std::size_t duplicates = 0;         /* IDs that repeat an earlier one */
    std::size_t session_inversions = 0; /* IDs not above the one that the session saw before */
    std::size_t late_ids = 0; /* IDs not above all of those seen before their statement was sent */
    std::vector<Id> examples; /* some of the duplicates */

    /* The same, where what is repeated or passed was seen only, and not committed. */
    std::size_t duplicates_of_seen = 0;
    std::size_t late_after_seen = 0;

    bool clean() const
    {
        return duplicates == 0 && session_inversions == 0 && late_ids == 0 &&
               duplicates_of_seen == 0 && late_after_seen == 0;
    }
};

constexpr std::size_t kExamples = 5;

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

/* Each of those that occur more than once, once. */
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
 * An occurrence is counted with the earlier one that it repeats: where any ID is seen n times, the
 * n - 1 that were seen first have been repeated.
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
        const std::vector<Id>& ids = history.ids;
        for (std::size_t i = 1; i < ids.size(); ++i)
            findings.session_inversions += ids[i] <= ids[i - 1] ? 1 : 0;
    }
}

/*
 * Over all sessions, order is promised only where there was an order: a statement that was sent
 * after another one's result was seen must not have drawn before it. Statements that overlap may
 * have drawn either way round.
 *
 * The statements are visited in the order they were sent. Those whose result had been seen by then
 * form a growing prefix of the statements in the order of `seen`, and of that prefix only the
 * largest ID matters: so it is two sorts and one walk, not a comparison of all pairs.
 */
inline void find_late_ids(const std::vector<History>& histories, Findings& findings)
{
    struct Span {
        const Id* begin;
        const Id* end;
        Instant sent;
        Instant seen;
        bool durable;
    };
    std::vector<Span> by_sent;
    for (const History& history : histories) {
        for (const Statement& statement : history.statements) {
            const Id* begin = history.ids.data() + statement.first;
            by_sent.push_back({begin, begin + statement.count, statement.sent, statement.seen,
                               statement.durable});
        }
    }
    std::vector<Span> by_seen = by_sent;
    std::sort(by_sent.begin(), by_sent.end(),
              [](const Span& a, const Span& b) { return a.sent < b.sent; });
    std::sort(by_seen.begin(), by_seen.end(),
              [](const Span& a, const Span& b) { return a.seen < b.seen; });

    /* No ID is the smallest bigint, so nothing is late before anything was seen. */
    Id largest_durable = std::numeric_limits<Id>::min();
    Id largest_seen = largest_durable;
    auto seen = by_seen.begin();
    for (const Span& span : by_sent) {
        /* Strictly before: readings that are equal do not tell which came first. */
        for (; seen != by_seen.end() && seen->seen < span.sent; ++seen) {
            if (seen->begin == seen->end)
                continue;
            const Id largest = *std::max_element(seen->begin, seen->end);
            largest_seen = std::max(largest_seen, largest);
            if (seen->durable)
                largest_durable = std::max(largest_durable, largest);
        }
        for (const Id* id = span.begin; id != span.end; ++id) {
            if (*id <= largest_durable)
                ++findings.late_ids;
            else if (*id <= largest_seen)
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

/* How many different IDs two groups of clients have in common. */
inline std::size_t common_ids(const std::vector<History>& one, const std::vector<History>& other)
{
    std::vector<Id> common;
    const std::vector<Id> left = sorted_ids(one);
    const std::vector<Id> right = sorted_ids(other);
    std::set_intersection(left.begin(), left.end(), right.begin(), right.end(),
                          std::back_inserter(common));
    /* An ID that both sides have twice is in the intersection twice. */
    return static_cast<std::size_t>(
        std::distance(common.begin(), std::unique(common.begin(), common.end())));
}

} // namespace stress
