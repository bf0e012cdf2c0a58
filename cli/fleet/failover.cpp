#include "fleet/failover.h"

#include <algorithm>

#include "sql/sql.h"

Obstacles find_unsynchronized(Connection& follower, const std::string& subscription)
{
    Obstacles found;
    found.read(follower, R"(
        SELECT format('subscription %I does not wait for the synchronous standby, which can lack changes after a failover', subname),
               format('ALTER SUBSCRIPTION %I SET (synchronous_commit = on);', subname)
        FROM pg_subscription JOIN pg_database AS d ON d.oid = subdbid AND datname = current_database()
        WHERE subname = $1 AND subsynccommit IN ('off', 'local') AND current_setting('synchronous_standby_names') <> '')",
               {subscription});
    return found;
}

Obstacles find_unsubscribed(Connection& follower, const std::string& record, const Shards& set)
{
    std::vector<std::string> schemas;
    for (const Shard& shard : set)
        schemas.push_back(shard.schema);
    Obstacles found;
    found.read(follower, unsubscribed_sql, {record, sql_array(schemas)});
    return found;
}

namespace
{

const std::string kSender = "; it follows ";

/* "" on a standby. The name of a file of WAL begins with the timeline; pg_control_checkpoint() has
 * the new one only after the first checkpoint. A table that leaves the subscription and comes back
 * has a new row in pg_subscription_rel, of another transaction. Nothing else writes these rows, as
 * no table is copied. */
std::string identity_of(Connection& server, const std::string& record)
{
    const Result identity = server.query(R"(
        SELECT CASE WHEN NOT pg_is_in_recovery() THEN
                   format('system %s, timeline %s', system_identifier, left(pg_walfile_name(pg_current_wal_insert_lsn()), 8)) ||
                   coalesce((SELECT format(', subscription %s with %s tables of transaction %s', s.oid, count(srrelid), string_agg(DISTINCT r.xmin::text, ', '))
                             FROM pg_subscription AS s LEFT JOIN pg_subscription_rel AS r ON srsubid = s.oid
                             WHERE subname = $1 AND subdbid = (SELECT oid FROM pg_database WHERE datname = current_database())
                             GROUP BY s.oid), '') END
        FROM pg_control_system())",
                                         {record});
    return identity.text(0, 0);
}

/* A comment on the record. */
struct Note {
    Note(Connection& server, const std::string& record)
        : text(server
                   .query("SELECT obj_description((SELECT c.oid FROM pg_class AS c JOIN "
                          "pg_namespace AS n ON n.oid = relnamespace WHERE nspname = $1 AND "
                          "relname = 'state'), 'pg_class')",
                          {record})
                   .text(0, 0)),
          end(std::min(text.find(kSender), text.size()))
    {
    }

    std::string own() const { return text.substr(0, end); }
    /* The part behind it, on a follower. */
    std::string rest() const { return text.substr(end); }

    const std::string text;
    const std::size_t end;
};

std::string note_sql(Connection& server, const std::string& record, const std::string& note)
{
    return "COMMENT ON TABLE " + record + ".state IS " + server.literal(note);
}

std::string was_and_is(const std::string& noted, const std::string& now)
{
    return noted.empty() ? "it was not noted, and is " + now
                         : "it was " + noted + ", and is " + now;
}

std::string other_follower(const std::string& noted, const std::string& now)
{
    return "has changed since it began to follow, and may lack changes that are not sent again: " +
           was_and_is(noted, now);
}

std::string other_sender(const std::string& noted, const std::string& now)
{
    return "has changed since the other server began to follow it, and each of them may lack "
           "changes of the other: " +
           was_and_is(noted, now);
}

} // namespace

Following::Following(Connection& follower, Connection& sender, const std::string& record)
    : follower_(follower), sender_(sender), record_(record),
      of_follower_(identity_of(follower, record)), of_sender_(identity_of(sender, record))
{
}

/* The record of the sender can come from its past, as that of an old primary which runs again. So
 * the note of the follower counts, too. */
std::string Following::change() const
{
    const Note here(follower_, record_);
    if (here.own() != of_follower_)
        return follower_.server() + " " + other_follower(here.own(), of_follower_);
    const Note there(sender_, record_);
    if (there.text != of_sender_)
        return sender_.server() + " " + other_sender(there.text, of_sender_);
    if (here.rest() != kSender + of_sender_)
        return sender_.server() + " " +
               other_sender(here.rest().substr(std::min(kSender.size(), here.rest().size())),
                            of_sender_);
    return "";
}

void Following::note() const
{
    sender_.run(note_sql(sender_, record_, of_sender_));
    follower_.run(note_sql(follower_, record_, of_follower_ + kSender + of_sender_));
}

void forget_following(Connection& follower, const std::string& record)
{
    follower.run("COMMENT ON TABLE " + record + ".state IS NULL");
}

Obstacles find_other_follower(Connection& follower, const std::string& record)
{
    const std::string now = identity_of(follower, record);
    const Note noted(follower, record);
    Obstacles found;
    if (!now.empty() && noted.own() != now)
        found.add(follower.server(), "the server " + other_follower(noted.own(), now),
                  note_sql(follower, record, now + noted.rest()) + ";");
    return found;
}

Obstacles find_other_sender(Connection& sender, const std::string& record)
{
    const std::string now = identity_of(sender, record);
    const Note noted(sender, record);
    Obstacles found;
    if (!now.empty() && noted.text != now)
        found.add(sender.server(), "the server " + other_sender(noted.text, now),
                  note_sql(sender, record, now) + ";");
    return found;
}
