#include "routers/kept_settings.h"

#include <utility>

#include "base/match.h"

namespace
{

/* Since 1.26 PgBouncer keeps every setting that a server reports (GUC_REPORT), and not only those
 * that all versions report. */
bool keeps_all_reported(const std::string& pooler)
{
    const auto version = match(pooler, "^([0-9]{1,4})\\.([0-9]{1,4})");
    return !version.empty() &&
           std::make_pair(std::stoi(version[1]), std::stoi(version[2])) >= std::make_pair(1, 26);
}

/* The first versions of PostgreSQL that report these. */
constexpr int kScramIterations = 160000; /* the setting is new there */
constexpr int kSearchPath = 180000;

} // namespace

/* A client has the settings that the server had when it connected, and a new client those that the
 * pool of the alias has ever had: a RELOAD does not remove them. In each connection that a client
 * gets, PgBouncer SETs its value of a setting, and RESETs a setting of which the client has none.
 * KILL removes the pool, with its clients. */
std::string why_disconnected(const std::string& pooler, int source, int target,
                             const std::function<bool()>& has_query)
{
    if (!keeps_all_reported(pooler))
        return "";
    if (source >= kScramIterations && target < kScramIterations)
        return "it would set scram_iterations for them, which PostgreSQL before 16 does not know, "
               "and refuse them";
    if (source < kSearchPath && target >= kSearchPath && has_query())
        return "it would reset search_path for them, which PostgreSQL reports since 18, and so "
               "undo connect_query";
    return "";
}
