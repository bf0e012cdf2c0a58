#include "move/other_replication.h"

#include "base/output.h"
#include "fleet/closed.h"

namespace
{

/* Publications that have the shard's tables, and slots whose readers get their changes. On a server
 * without the schema only FOR ALL TABLES counts. Other plugins know no publications. The slots of a
 * table's copy belong to a subscription that has a slot of its own. */
const char* const kReaders = R"(
WITH publications AS (
    SELECT pubname FROM pg_publication AS p
    WHERE pubname !~ '^snowflake_(move_|global)'
    AND (puballtables
         OR EXISTS (SELECT FROM pg_publication_namespace WHERE pnpubid = p.oid AND pnnspid = ANY (ARRAY(SELECT to_regnamespace(name) FROM unnest($1::text[]) AS name)))
         OR EXISTS (SELECT FROM pg_publication_rel JOIN pg_class AS c ON c.oid = prrelid
                    WHERE prpubid = p.oid AND relnamespace = ANY (ARRAY(SELECT to_regnamespace(name) FROM unnest($1::text[]) AS name))))
), readers AS (
    SELECT 1, 'publication ' || quote_ident(pubname) FROM publications
    UNION ALL
    SELECT 2, 'slot ' || slot_name FROM pg_replication_slots
    WHERE slot_type = 'logical' AND database = current_database() AND slot_name !~ '^(snowflake_(move_|global)|pg_[0-9]+_sync_)'
    AND (plugin <> 'pgoutput' OR EXISTS (TABLE publications))
)
SELECT string_agg(name, ', ' ORDER BY kind, name) FROM readers AS r (kind, name) HAVING count(*) > 0)";

} // namespace

/* They are no obstacles: the readers may be prepared, or may not need these changes. */
void tell_of_readers(Servers& servers, const Shards& shards)
{
    const auto tell = [&shards](Connection& server, const std::string& text) {
        const Result readers = server.query(kReaders, {schemas_of(shards)});
        if (readers.rows() > 0)
            warn(server.server() + ": " + visible(readers.text(0, 0)) + ": " + text +
                 " (docs/consume.md, Logical decoding)");
    };
    auto& [source, target] = servers;
    tell(source, "changes of the shard come from there until the cutover, and then from " +
                     target.server());
    tell(target, "the copied rows come from there, too, unless the reader leaves out rows that "
                 "have an origin");
}

Obstacles find_writing_subscriptions(Connection& connection, const Move& move)
{
    return find_writing_subscriptions(connection, move.shards, move.name);
}

Obstacles find_writing_subscriptions(Servers& servers, const Move& move)
{
    Obstacles found = find_writing_subscriptions(servers.source, move);
    found.add(find_writing_subscriptions(servers.target, move));
    return found;
}
