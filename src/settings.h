/* The extension's settings. They can be changed at any time, without a restart. */
#pragma once

#include <cstdint>

namespace snowflake::settings
{

void define();

/* snowflake.shard; kShardUnset where it is not set. */
constexpr int kShardUnset = -1;
int shard();

/* snowflake.max_lead, in ms */
std::int64_t max_lead();

/* snowflake.max_drift, in ms; kDriftUnlimited: never an error */
constexpr int kDriftUnlimited = -1;
std::int64_t max_drift();

} // namespace snowflake::settings
