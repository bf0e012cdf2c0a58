#include "fleet/published.h"

namespace
{

/* The slots of a table's copy belong to a subscription that has a slot of its own. */
const char* const kPublished = R"(
SELECT format('publication %I is FOR ALL TABLES, and the tables of the record are among them: a subscription that reads slot %s would fail for ever',
              pubname, string_agg(slot_name, ', ' ORDER BY slot_name)),
       format('CREATE PUBLICATION ... FOR TABLES IN SCHEMA ...; in place of %I: docs/operations.md (All tables) says how the subscription takes it. '
              'Or --trust-readers, if all readers ignore tables that they do not know.', pubname)
FROM pg_publication CROSS JOIN pg_replication_slots
WHERE puballtables AND plugin = 'pgoutput' AND database = current_database()
AND slot_name !~ '^(snowflake_(move_|global)|pg_[0-9]+_sync_)'
GROUP BY pubname ORDER BY pubname)";

} // namespace

Obstacles find_published_records(Connection& connection)
{
    Obstacles found;
    found.read(connection, kPublished);
    return found;
}
