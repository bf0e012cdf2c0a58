/* Settings that PgBouncer keeps for clients while an alias is led to a server of another version.
 */

#pragma once

#include <functional>
#include <string>

/* Why the clients of an alias are disconnected; empty if they stay connected. pooler: "1.26.1", its
 * version; source, target: 150018, as PQserverVersion() has it; has_query: whether the alias has a
 * connect_query, asked if that matters. */
std::string why_disconnected(const std::string& pooler, int source, int target,
                             const std::function<bool()>& has_query);
