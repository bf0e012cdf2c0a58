#include "settings.h"

#include "rule/layout.h"
#include "pg.h"

namespace snowflake::settings
{
namespace
{

constexpr int kDefaultMaxLead = 1000;
constexpr int kLargestMaxLead = 60 * 60 * 1000;
constexpr int kDefaultMaxDrift = 60 * 60 * 1000;

} // namespace

int shard = kShardUnset;
int max_lead = kDefaultMaxLead;
int max_drift = kDefaultMaxDrift;

/*
 * Any role may set the shard: a role that may draw from a sequence can name any shard in the call
 * anyway, and the owner of a trusted installation must be able to run ALTER DATABASE ... SET.
 * The limits need a superuser or GRANT SET: they decide how far IDs of all sessions may be ahead of
 * the clock.
 */
void define()
{
    DefineCustomIntVariable(
        "snowflake.shard",
        "Shard of the IDs that snowflake_next_id() makes when called without arguments.",
        "0 to 8191, the same for all sessions of a database: ALTER DATABASE ... SET "
        "snowflake.shard = n. "
        "-1 is unset.",
        &shard, kShardUnset, kShardUnset, kMaxShard, PGC_USERSET, 0, nullptr, nullptr, nullptr);

    DefineCustomIntVariable("snowflake.max_lead",
                            "How far a sequence that makes more than 1024 IDs per millisecond may "
                            "run ahead of the clock before its callers wait.",
                            "0: no ID is ahead of the clock.", &max_lead, kDefaultMaxLead, 0,
                            kLargestMaxLead, PGC_SUSET, GUC_UNIT_MS, nullptr, nullptr, nullptr);

    DefineCustomIntVariable(
        "snowflake.max_drift",
        "How far the clock may be behind a sequence before making an ID is an error.",
        "Up to there, IDs go on from the last one at 1024 per millisecond. -1: never an error.",
        &max_drift, kDefaultMaxDrift, kDriftUnlimited, INT_MAX, PGC_SUSET, GUC_UNIT_MS, nullptr,
        nullptr, nullptr);

    MarkGUCPrefixReserved("snowflake");
}

} // namespace snowflake::settings
