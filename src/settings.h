/* The extension's settings. The server writes them, at any time and without a restart. */
#pragma once

namespace snowflake::settings
{

void define();

/* snowflake.shard; kShardUnset where it is not set. */
constexpr int kShardUnset = -1;
extern int shard;

/* snowflake.max_lead, in ms */
extern int max_lead;

/* snowflake.max_drift, in ms; kDriftUnlimited: never an error */
constexpr int kDriftUnlimited = -1;
extern int max_drift;

} // namespace snowflake::settings
