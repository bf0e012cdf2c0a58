/*
 * Looks for duplicates and for violations of order in what the clients saw. Pure: it knows neither
 * the server nor the generator, so that it can be shown histories with a known fault.
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

    bool clean() const { return duplicates == 0 && session_inversions == 0 && late_ids == 0; }
};

constexpr std::size_t kExamples = 5;

inline std::vector<Id> sorted_ids(const std::vector<History>& histories)
{
    std::vector<Id> ids;
    for (const History& history : histories)
        ids.insert(ids.end(), history.ids.begin(), history.ids.end());
    std::sort(ids.begin(), ids.end());
    return ids;
}

inline void find_duplicates(const std::vector<History>& histories, Findings& findings)
{
    const std::vector<Id> ids = sorted_ids(histories);
    findings.ids = ids.size();
    for (std::size_t i = 1; i < ids.size(); ++i) {
        if (ids[i] != ids[i - 1])
            continue;
        ++findings.duplicates;
        const bool is_new = findings.examples.empty() || findings.examples.back() != ids[i];
        if (is_new && findings.examples.size() < kExamples)
            findings.examples.push_back(ids[i]);
    }
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
    };
    std::vector<Span> by_sent;
    for (const History& history : histories) {
        for (const Statement& statement : history.statements) {
            const Id* begin = history.ids.data() + statement.first;
            by_sent.push_back({begin, begin + statement.count, statement.sent, statement.seen});
        }
    }
    std::vector<Span> by_seen = by_sent;
    std::sort(by_sent.begin(), by_sent.end(),
              [](const Span& a, const Span& b) { return a.sent < b.sent; });
    std::sort(by_seen.begin(), by_seen.end(),
              [](const Span& a, const Span& b) { return a.seen < b.seen; });

    Id largest_seen = std::numeric_limits<Id>::min();
    auto seen = by_seen.begin();
    for (const Span& span : by_sent) {
        /* Strictly before: readings that are equal do not tell which came first. */
        for (; seen != by_seen.end() && seen->seen < span.sent; ++seen) {
            if (seen->begin != seen->end)
                largest_seen = std::max(largest_seen, *std::max_element(seen->begin, seen->end));
        }
        /* No ID is the smallest bigint, so nothing is late before anything was seen. */
        findings.late_ids += static_cast<std::size_t>(
            std::count_if(span.begin, span.end, [&](Id id) { return id <= largest_seen; }));
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
