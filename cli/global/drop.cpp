/* snowflake-shard global drop: tables are global no more, or servers follow no more. */

#include <algorithm>
#include <set>

#include "base/output.h"
#include "global/follower.h"
#include "global/publication.h"
#include "global/session.h"
#include "global/tables.h"

namespace
{

using Names = std::vector<std::string>;

class Removal
{
public:
    Removal(const GlobalOptions& options)
        : options_(options), session_(options, options.is_forced),
          tables_(table_names(*session_.followers()[0], options))
    {
    }

    int execute()
    {
        const Names left = tables_.empty() ? Names() : tables_that_stay();
        for (Connection* const follower : session_.followers())
            if (left.empty())
                drop_follower(*follower);
            else
                drop_tables(*follower);
        if (left.empty() && session_.has_writer())
            end_publication();
        print(report_, format_of("", options_.json));
        return kDone;
    }

private:
    /* All followers must be given: one that still has the table in its subscription would stop to
     * get its changes, and refuse writes to it. */
    Names tables_that_stay()
    {
        if (!session_.has_writer())
            throw Failure("tables can be dropped only on the server of --on\nHINT:  Without "
                          "tables, the followers are taken away from it.");
        Connection& writer = session_.writer();
        Names slots = slots_of_followers(writer);
        for (Connection* const follower : session_.followers())
            slots.erase(
                std::remove(slots.begin(), slots.end(), require_subscription(*follower).slot),
                slots.end());
        if (!slots.empty())
            throw Failure("slot " + slots[0] + " on " + writer.server() +
                          " is of a follower that is not given\nHINT:  Give all followers. If that "
                          "one is gone: SELECT pg_drop_replication_slot('" +
                          slots[0] + "');");
        const Names published = require_publication(writer).tables;
        std::set<std::string> all(published.begin(), published.end());
        for (Connection* const follower : session_.followers())
            for (const std::string& table : refusing_tables(*follower))
                all.insert(table);
        Names dropped;
        for (const std::string& table : tables_) {
            if (all.erase(table) == 0)
                throw UsageError("table " + visible(table) + " is not global on " +
                                 writer.server());
            if (std::find(published.begin(), published.end(), table) != published.end())
                dropped.push_back(table);
        }
        Names left(all.begin(), all.end());
        if (!left.empty() && !dropped.empty())
            unpublish(writer, dropped);
        return left;
    }

    bool has(const std::string& table) const
    {
        return std::find(tables_.begin(), tables_.end(), table) != tables_.end();
    }

    void drop_tables(Connection& follower)
    {
        const Subscription subscription = require_subscription(follower);
        if (!subscription.name.empty())
            follower.run("ALTER SUBSCRIPTION " + subscription.quoted + " REFRESH PUBLICATION");
        note(follower, subscription);
        permit_writes(follower, tables_);
    }

    /* The slot goes before the subscription, which has its name: a killed command is completed by
     * the same one. */
    void drop_follower(Connection& follower)
    {
        const Subscription subscription = require_subscription(follower);
        note(follower, subscription);
        if (!subscription.name.empty()) {
            stop_subscription(follower, subscription);
            if (!session_.has_writer())
                warn(follower.server() + ": the slot is left on the server of --on, and keeps WAL" +
                     "\nHINT:  SELECT pg_drop_replication_slot(" +
                     follower.literal(subscription.slot) + ");");
            else
                drop_slot(session_.writer(), subscription.slot);
            drop_subscription(follower, subscription);
        }
        permit_writes(follower, refusing_tables(follower));
    }

    void note(Connection& follower, const Subscription& subscription)
    {
        std::set<std::string> tables;
        for (const std::string& table : refusing_tables(follower))
            tables.insert(table);
        for (const auto& [table, state] : subscription.tables)
            tables.insert(table);
        for (const std::string& table : tables)
            if (tables_.empty() || has(table))
                report_.rows.push_back({table, follower.address().text(), "dropped"});
    }

    void end_publication()
    {
        Connection& writer = session_.writer();
        const Names slots = slots_of_followers(writer);
        if (slots.empty())
            drop_publication(writer);
    }

    const GlobalOptions& options_;
    GlobalSession session_;
    const Names tables_; /* none: all */
    Table report_ = {kStateColumns, {}};
};

} // namespace

int drop_global(const GlobalOptions& options)
{
    return Removal(options).execute();
}
