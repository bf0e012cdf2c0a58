/* Settings of a server that publishes. */

#pragma once

#include <string>
#include <vector>

#include "postgres/obstacles.h"

/* The wal_level of the publisher, if it is too low. From PostgreSQL 19 on the first logical slot
 * raises the level from replica to logical (effective_wal_level), and the last one that goes lowers
 * it again. */
Obstacles find_low_wal_level(Connection& publisher);

/* synchronous_standby_names has *, which every walsender matches, that of a subscription, too. It
 * confirms the changes that the subscriber has applied, so a COMMIT ends before a standby has it.
 */
Obstacles find_standby_of_any_name(Connection& publisher);

/* Output plugins that the server lets no slot use (output_plugin_libraries): an error when the slot
 * is made or read. None if its minor release does not have the setting, or if this role may not
 * read it. */
Obstacles find_refused_plugins(Connection& publisher,
                               const std::vector<std::string>& plugins = {"pgoutput"});
