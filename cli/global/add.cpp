/* snowflake-shard global add: makes tables global, and servers their followers.
 *
 * Each step reads the state of the servers and completes it, so a killed command is completed by
 * the same one. The tables are made on all followers before they are published: a worker fails at a
 * change of a table that its server lacks. A slot is made after the COMMIT of the publication,
 * because pgoutput looks that up as it was at the change that it decodes. */

#include <algorithm>
#include <map>

#include "base/interrupt.h"
#include "base/output.h"
#include "base/timeouts.h"
#include "global/follower.h"
#include "global/publication.h"
#include "global/session.h"
#include "global/tables.h"
#include "cutover/waiting.h"
#include "postgres/locked_schemas.h"
#include "postgres/settings.h"
#include "replication/comparison.h"
#include "replication/publication.h"
#include "replication/slots.h"
#include "replication/subscription.h"

namespace
{

class Addition
{
public:
    Addition(const GlobalOptions& options)
        : options_(options), session_(options, false), writer_(session_.writer()),
          holder_(writer_.dsn_of_server()), tables_(require_publication(writer_).tables)
    {
        withstand_settings(holder_);
        for (const std::string& table : table_names(writer_, options))
            if (!has(tables_, table)) {
                tables_.push_back(table);
                new_.push_back(table);
            }
    }

    int execute()
    {
        if (tables_.empty())
            throw UsageError("no table is given, and no table is global on " + writer_.server());
        if (find_unlockable(writer_, tables_).empty()) /* else an obstacle */
            hold_names();
        if (const Obstacles obstacles = find_obstacles(session_, options_, tables_, new_);
            !obstacles.empty())
            return print_obstacles(obstacles, options_.json);
        Table report = {kStateColumns, {}};
        for (Connection* const follower : session_.followers()) {
            const Subscription before = require_subscription(*follower);
            for (const std::string& table : tables_)
                report.rows.push_back({table, follower->address().text(),
                                       before.tables.count(table) > 0 ? "there already" : "added"});
            make_missing(*follower);
        }
        if (!new_.empty())
            publish(writer_, new_, oids_);
        part_copies();
        for (Connection* const follower : session_.followers())
            subscribe(*follower);
        for (Connection* const follower : session_.followers())
            await_rows(*follower);
        print(report, format_of("", options_.json));
        return kDone;
    }

private:
    /* The owner of a schema can give its name to another schema, with tables of other roles. Their
     * rows would get to a table with the rights of his own: the tables are dumped, published and
     * copied by name. So their schemas are locked on the writer until all rows are copied. The
     * subscriptions make slots meanwhile. */
    void hold_names()
    {
        holder_.run("BEGIN");
        const Result schemas = holder_.query(R"(
            SELECT coalesce(array_agg(quote_ident(nspname)), '{}'), coalesce(array_agg(n.oid), '{}')
            FROM unnest($1::text[]) AS t (name) CROSS JOIN LATERAL parse_ident(name) AS p JOIN pg_namespace AS n ON nspname = p[1])",
                                             {sql_array(tables_)});
        if (!lock_schemas(holder_, schemas.text(0, 0), schemas.text(0, 1), SchemaLock::object))
            throw Failure(holder_.server() + ": a schema of the tables was renamed meanwhile");
        oids_ = holder_
                    .query("SELECT ARRAY(SELECT c.oid FROM unnest($1::text[]) AS t JOIN pg_class "
                           "AS c ON c.oid = to_regclass(t))",
                           {sql_array(new_)})
                    .text(0, 0);
    }

    /* A command that is killed between the two leaves tables without rows, as others that are
     * there.
     */
    void make_missing(Connection& follower)
    {
        Names missing;
        for (const std::string& table : tables_)
            if (!has_table(follower, table))
                missing.push_back(table);
        make_tables(writer_, follower, missing);
        lock_and_change(follower,
                        [&] { refuse_writes(follower, tables_, writer_.address().text()); });
    }

    /* Gives each server a subscription of its own. After a split two servers have the same one. It
     * was disabled before, so both have stopped at the same change, and the slot has waited for
     * them there. */
    void part_copies()
    {
        std::map<std::string, Connection*> readers;
        for (Connection* const follower : session_.followers()) {
            const Subscription subscription = require_subscription(*follower);
            if (subscription.tables.empty())
                continue;
            const auto [first, is_new] = readers.insert({subscription.slot, follower});
            if (is_new)
                continue;
            if (subscription.is_enabled || find_subscription(*first->second).is_enabled)
                throw Failure(follower->server() + " and " + first->second->server() +
                              " have the same slot, " + subscription.slot +
                              ", and it was not disabled during a split: one of them misses "
                              "changes\nHINT:  On the new one: " +
                              removal_of(subscription.quoted) +
                              " Then add it again: its rows are compared.");
            const std::string name = new_name(*follower);
            writer_.query("SELECT pg_copy_logical_replication_slot($1, $2)",
                          {subscription.slot, name});
            follower->run("BEGIN; ALTER SUBSCRIPTION " + subscription.quoted +
                          " SET (slot_name = '" + name + "'); ALTER SUBSCRIPTION " +
                          subscription.quoted + " RENAME TO " + name + "; COMMIT");
        }
    }

    void subscribe(Connection& follower)
    {
        Subscription subscription = require_subscription(follower);
        /* A killed command has left this one. */
        if (!subscription.name.empty() && subscription.tables.empty()) {
            end(follower, subscription);
            subscription = {};
        }
        if (!subscription.name.empty()) {
            if (!subscription.is_enabled)
                enable(follower, subscription);
            Names added;
            for (const std::string& table : tables_)
                if (subscription.tables.count(table) == 0)
                    added.push_back(table);
            if (has_any_rows(follower, added))
                follow_equal_too(follower, subscription, added);
            else
                refresh(follower, subscription, true);
            return;
        }
        try {
            subscription = make_subscription(follower, dsn_of(writer_, options_.source));
            make_slot(writer_, subscription.slot);
            if (has_any_rows(follower, tables_)) {
                follow_equal(follower, subscription);
            } else {
                enable(follower, subscription);
                refresh(follower, subscription, true);
            }
        } catch (const Failure&) {
            /* Nothing keeps WAL after an error, and nothing is published that nobody reads. */
            follower.rollback();
            try {
                if (!subscription.name.empty())
                    end(follower, subscription);
                drop_unread_publication(writer_);
            } catch (const Failure& second) {
                warn(second.what());
            }
            throw;
        }
    }

    void end(Connection& follower, const Subscription& subscription)
    {
        stop_subscription(follower, subscription);
        drop_slot(writer_, subscription.slot);
        drop_subscription(follower, subscription);
    }

    static void enable(Connection& follower, const Subscription& subscription)
    {
        follower.run("ALTER SUBSCRIPTION " + subscription.quoted + " ENABLE");
    }

    /* Only an enabled subscription can be refreshed. Tables of a role that the command does not
     * trust can have been renamed meanwhile. */
    void refresh(Connection& follower, const Subscription& subscription, bool copies)
    {
        follower.run("ALTER SUBSCRIPTION " + subscription.quoted +
                     " REFRESH PUBLICATION WITH (copy_data = " + (copies ? "true" : "false") + ")");
        const Subscription now = find_subscription(follower);
        for (const auto& [table, state] : now.tables)
            if (!has(tables_, table))
                throw Failure(follower.server() + ": table " + visible(table) +
                              " is in the publication, and was not checked: run the command "
                              "again");
        for (const std::string& table : tables_)
            if (now.tables.count(table) == 0)
                throw Failure(
                    follower.server() + ": the subscription has not got table " + visible(table) +
                    "\nHINT:  Give the address of the first server of --on as that server "
                    "reaches it: --source.");
    }

    static bool has_any_rows(Connection& follower, const Names& tables)
    {
        return std::any_of(tables.begin(), tables.end(),
                           [&](const std::string& table) { return has_rows(follower, table); });
    }

    /* The rows are there already, as after a lost slot, and shards refer to them. They are compared
     * while nobody can write, and the subscription begins at that position: earlier changes, which
     * the new slot has, are in the rows. The slot comes before the lock, because it waits for
     * transactions that could wait for the lock. */
    void follow_equal(Connection& follower, const Subscription& subscription)
    {
        lock_and_change(writer_, [&] {
            writer_.run("LOCK TABLE " + only(tables_) + " IN SHARE MODE");
            const std::string position =
                writer_.query("SELECT pg_current_wal_insert_lsn()").text(0, 0);
            require_equal(follower, tables_);
            begin_at(follower, subscription.name, position);
            enable(follower, subscription);
            refresh(follower, subscription, false);
        });
    }

    /* The same for tables that were removed, by a follower of others. Until the refresh its worker
     * passes over their changes, and after it applies them. Changes from before the lock are in the
     * rows, so the worker must have passed them. The commit of another session flushes them. */
    void follow_equal_too(Connection& follower, const Subscription& subscription,
                          const Names& added)
    {
        Connection flusher(writer_.dsn_of_server());
        withstand_settings(flusher);
        lock_and_change(writer_, [&] {
            writer_.run("LOCK TABLE " + only(added) + " IN SHARE MODE");
            flusher.run("SELECT pg_logical_emit_message(true, 'snowflake', '')");
            await_follower(writer_, follower, subscription.slot, timeouts::kLockedCatchUp);
            require_equal(follower, added);
            refresh(follower, subscription, false);
        });
    }

    void require_equal(Connection& follower, const Names& tables)
    {
        for (const std::string& table : tables)
            if (const std::string difference = compare_table(writer_, follower, table);
                !difference.empty())
                throw Failure(follower.server() + ": table " + visible(table) + ": " +
                              visible(difference) +
                              "\nHINT:  Make the rows equal, or delete all of them there.");
    }

    /* A worker that fails tries again for ever, and says why in the log of its server alone. */
    void await_rows(Connection& follower)
    {
        const std::int64_t failures = count_failures(follower, find_subscription(follower).name);
        Subscription now;
        Wait wait([&] {
            Names left;
            for (const auto& [table, state] : now.tables)
                if (state != "r")
                    left.push_back(table);
            return follower.server() + ": not all rows are there of " +
                   visible(joined(left, ", ")) +
                   (count_failures(follower, now.name) > failures
                        ? "; replication has failed, and is tried again: the log of that server "
                          "says why"
                        : "");
        });
        for (Pause pause;; pause()) {
            stop_if_interrupted();
            now = find_subscription(follower);
            if (!has_slot(writer_, now.slot))
                throw Failure("slot " + now.slot + " on " + writer_.server() +
                              " is gone, or has lost WAL");
            if (now.has_all_rows())
                return;
            wait.tell();
        }
    }

    const GlobalOptions& options_;
    GlobalSession session_;
    Connection& writer_;
    Connection holder_; /* of the writer, in a transaction until the end */
    Names tables_;      /* the global ones, and those of the command line */
    Names new_;         /* that are not published yet */
    std::string oids_;  /* of these */
};

} // namespace

int add_global(const GlobalOptions& options)
{
    note_interrupts();
    return Addition(options).execute();
}
