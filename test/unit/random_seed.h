/* A seed for a property test: printed, and taken from SNOWFLAKE_TEST_SEED to repeat a run. */
#pragma once

#include <cstdint>
#include <cstdlib>
#include <iostream>
#include <random>

inline std::mt19937_64 seeded_random(const char* test)
{
    const char* given = std::getenv("SNOWFLAKE_TEST_SEED");
    const std::uint64_t seed =
        given != nullptr ? std::strtoull(given, nullptr, 10) : std::random_device{}();
    std::cout << test << ": SNOWFLAKE_TEST_SEED=" << seed << std::endl;
    return std::mt19937_64{seed};
}

inline std::int64_t between(std::mt19937_64& random, std::int64_t low, std::int64_t high)
{
    return std::uniform_int_distribution<std::int64_t>{low, high}(random);
}
