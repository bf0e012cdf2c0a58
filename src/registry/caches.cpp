#include "registry/caches.h"

namespace snowflake::registry
{

void count_looked_at(int objects)
{
    constexpr int kMaxObjects = 2000; /* 40 MB of tables */
    static int looked_at = 0;
    looked_at += objects;
    if (looked_at < kMaxObjects)
        return;
    looked_at = 0;
    InvalidateSystemCaches();
}

} // namespace snowflake::registry
