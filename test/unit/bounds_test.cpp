/* Sequences that make no IDs on this server. */
#include "rule/bounds.h"

#include <gtest/gtest.h>

using namespace snowflake;

namespace
{

/* SQL calls these functions with any two values. -fwrapv would hide an overflow; a constant
 * expression with one does not compile. */
TEST(Bounds, OfExtremeValuesDoNotOverflow)
{
    constexpr bool kClosed[] = {is_closed(INT64_MAX, INT64_MIN), is_closed(INT64_MIN, INT64_MIN),
                                is_closed(INT64_MIN, INT64_MAX), is_closed(INT64_MAX, INT64_MAX)};
    for (const bool closed : kClosed)
        EXPECT_FALSE(closed);
    static_assert(is_closed(INT64_MAX - 1, INT64_MAX) && is_closed(INT64_MIN, INT64_MIN + 1));

    /* Its range would end at max, if positions began anew after the largest. */
    constexpr std::int64_t kLast = INT64_MAX - (std::int64_t{1} << kCitusGroupShift) + 2;
    constexpr bool kCopy[] = {is_citus_copy(kLast, INT64_MIN + 1), is_citus_copy(kLast, INT64_MIN),
                              is_citus_copy(INT64_MAX, INT64_MIN),
                              is_citus_copy(INT64_MIN, INT64_MAX),
                              is_citus_copy(INT64_MAX, INT64_MAX)};
    for (const bool copy : kCopy)
        EXPECT_FALSE(copy);
}

} // namespace
