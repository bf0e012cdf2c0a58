/* snowflake-shard global remove: tables are global no more, or servers follow no more. */

#include <set>

#include "base/output.h"
#include "global/follower.h"
#include "global/publication.h"
#include "global/session.h"

namespace
{

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
                remove_follower(*follower);
            else
                remove_tables(*follower);
        if (left.empty() && session_.has_writer())
            drop_unread_publication(session_.writer());
        print(report_, format_of("", options_.json));
        return kDone;
    }

private:
    /* All followers must be given: one that still has the table in its subscription would stop to
     * get its changes, and refuse writes to it. */
    Names tables_that_stay()
    {
        if (!session_.has_writer())
            throw Failure("tables can be removed only on the server of --on\nHINT:  Without "
                          "tables, the followers are taken away from it.");
        Connection& writer = session_.writer();
        for (Connection* const follower : session_.followers())
            require_subscription(*follower);
        require_all(session_, "all followers");
        const Names published = require_publication(writer).tables;
        std::set<std::string> all(published.begin(), published.end());
        for (Connection* const follower : session_.followers())
            for (const std::string& table : refusing_tables(*follower))
                all.insert(table);
        Names removed;
        for (const std::string& table : tables_) {
            if (all.erase(table) == 0)
                throw UsageError("table " + visible(table) + " is not global on " +
                                 writer.server());
            if (has(published, table))
                removed.push_back(table);
        }
        Names left(all.begin(), all.end());
        if (!left.empty() && !removed.empty())
            unpublish(writer, removed);
        return left;
    }

    void remove_tables(Connection& follower)
    {
        const Subscription subscription = require_subscription(follower);
        if (!subscription.name.empty())
            follower.run("ALTER SUBSCRIPTION " + subscription.quoted + " REFRESH PUBLICATION");
        note(follower, subscription);
        permit_writes(follower, tables_);
    }

    /* The slot goes before the subscription, which has its name: a killed command is completed by
     * the same one. */
    void remove_follower(Connection& follower)
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
            if (tables_.empty() || has(tables_, table))
                report_.rows.push_back({table, follower.address().text(), "removed"});
    }

    const GlobalOptions& options_;
    GlobalSession session_;
    const Names tables_; /* none: all */
    Table report_ = {kStateColumns, {}};
};

} // namespace

int remove_global(const GlobalOptions& options)
{
    return Removal(options).execute();
}
