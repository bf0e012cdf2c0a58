/*
 * Fabricated histories with one known fault each, and clean ones that look similar. The checker's
 * "no fault" is worth something only if it judges all of these correctly.
 */
#pragma once

#include "checker.h"

#include <string>

namespace stress
{

struct Fabricated {
    const char* what;
    std::vector<History> histories;
    std::size_t duplicates;
    std::size_t session_inversions;
    std::size_t late_ids;
    std::size_t duplicates_of_seen = 0;
    std::size_t late_after_seen = 0;
};

inline std::vector<Fabricated> fabricated_histories()
{
    return {
        {"two sessions in turn, all in order",
         {{{1, 2, 5, 6}, {{0, 1, 0, 2}, {4, 5, 2, 2}}}, {{3, 4}, {{2, 3, 0, 2}}}},
         0,
         0,
         0},
        {"statements that overlap may draw in either order",
         {{{10, 20}, {{0, 9, 0, 2}}}, {{5, 15}, {{9, 12, 0, 2}}}},
         0,
         0,
         0},
        {"an ID in two sessions, under way at the same time",
         {{{1, 7}, {{0, 9, 0, 2}}}, {{3, 7}, {{0, 9, 0, 2}}}},
         1,
         0,
         0},
        {"an ID seen three times repeats twice",
         {{{7}, {{0, 9, 0, 1}}}, {{7}, {{0, 9, 0, 1}}}, {{7}, {{0, 9, 0, 1}}}},
         2,
         0,
         0},
        {"an inversion inside one statement", {{{1, 3, 2, 4}, {{0, 9, 0, 4}}}}, 0, 1, 0},
        {"a repeat in one session is out of order too", {{{1, 1}, {{0, 9, 0, 2}}}}, 1, 1, 0},
        {"a statement sent after a larger ID was seen elsewhere",
         {{{10}, {{0, 1, 0, 1}}}, {{9, 11}, {{2, 3, 0, 2}}}},
         0,
         0,
         1},
        {"the larger ID is not the one seen last",
         {{{30}, {{0, 1, 0, 1}}}, {{10}, {{0, 5, 0, 1}}}, {{20}, {{6, 7, 0, 1}}}},
         0,
         0,
         1},
        {"an ID that was only seen, and made again by one that commits",
         {{{7}, {{0, 1, 0, 1, false}}}, {{7}, {{2, 3, 0, 1}}}},
         0,
         0,
         0,
         1,
         1},
        {"an ID that was committed, and made again by one that is rolled back",
         {{{7}, {{0, 1, 0, 1}}}, {{7}, {{2, 3, 0, 1, false}}}},
         1,
         0,
         1},
        {"below one that was only seen, and above all that were committed",
         {{{9, 5}, {{0, 3, 0, 1, false}, {0, 1, 1, 1}}}, {{6}, {{4, 5, 0, 1}}}},
         0,
         1,
         0,
         0,
         1},
    };
}

/* The descriptions of the histories that the checker judges wrongly. */
inline std::vector<std::string> misjudged_histories()
{
    std::vector<std::string> misjudged;
    for (const Fabricated& fabricated : fabricated_histories()) {
        const Findings findings = check(fabricated.histories);
        if (findings.duplicates != fabricated.duplicates ||
            findings.session_inversions != fabricated.session_inversions ||
            findings.late_ids != fabricated.late_ids ||
            findings.duplicates_of_seen != fabricated.duplicates_of_seen ||
            findings.late_after_seen != fabricated.late_after_seen)
            misjudged.emplace_back(fabricated.what);
    }
    return misjudged;
}

} // namespace stress
