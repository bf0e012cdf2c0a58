/* snowflake-shard global run: changes the definition of global tables, on all servers.
 *
 * A worker fails at a row with a column that its table lacks, so each kind of change would need its
 * own order of servers: ADD COLUMN on the followers first, DROP COLUMN on the writer, and RENAME
 * has none. One rule holds for all of them: nobody writes to the tables, and the followers have all
 * earlier rows, while the SQL runs in open transactions on all servers.
 *
 * The writer commits first. A follower that is lost then has all rows of the old definition, and
 * gets none but those of the new one. Its worker may fail at these, and goes on when the SQL has
 * run there. In the other order a follower with the new definition could get rows of the old one,
 * at which its worker fails for ever. */

#include <algorithm>

#include "base/interrupt.h"
#include "base/output.h"
#include "base/timeouts.h"
#include "global/change.h"
#include "global/follower.h"
#include "global/publication.h"
#include "global/session.h"
#include "global/tables.h"
#include "cutover/waiting.h"
#include "postgres/session.h"
#include "postgres/settings.h"
#include "postgres/sql_text.h"
#include "replication/publication.h"
#include "replication/slots.h"
#include "verbs/changes.h"

namespace
{

/* A follower and its subscription when the command began. */
struct Follower {
    Connection& connection;
    Subscription subscription;
};

class Run
{
public:
    explicit Run(const GlobalOptions& options)
        : options_(options), sql_(read_sql(options.sql, options.file, "--sql or --file")),
          session_(options.dsns), writer_(session_.writer()), observer_(writer_.dsn_of_server())
    {
        withstand_settings(observer_);
        observer_.run("SET synchronous_commit = local");
    }

    int execute()
    {
        const Publication publication = require_publication(writer_);
        change_ = publication.change;
        find_followers();
        if (!change_.id.empty() && change_.sql != sql_) {
            if (const Names missing = servers_without_change(); !missing.empty())
                throw Failure("an earlier change is on " + writer_.server() + ", and not on " +
                              joined(missing, ", ") +
                              "\nHINT:  Complete it first: snowflake-shard global run with all "
                              "servers, and --sql or --file with: " +
                              visible(change_.sql));
            /* The command of that change was killed at the very end. */
            change_ = {};
            forget_change(writer_);
        }
        const bool is_new = change_.id.empty();
        if (is_new) {
            if (const Obstacles obstacles =
                    find_obstacles(session_, trusting(), publication.tables, {});
                !obstacles.empty())
                return print_obstacles(obstacles, options_.json);
            change_everywhere(publication);
        }
        report_.rows.insert(report_.rows.begin(),
                            {writer_.address().text(), is_new ? "changed" : "had it already"});
        complete();
        print(report_, format_of("", options_.json));
        return kDone;
    }

private:
    /* The rows are there already, and their owners are those that replication has. */
    GlobalOptions trusting() const
    {
        GlobalOptions options = options_;
        options.trusts_owners = true;
        return options;
    }

    std::chrono::milliseconds timeout() const
    {
        return std::chrono::milliseconds(static_cast<std::int64_t>(options_.timeout * 1000));
    }

    /* All must be given: another one would fail at a row of the new definition. */
    void find_followers()
    {
        for (Connection* const follower : session_.followers()) {
            const Subscription found = require_subscription(*follower);
            if (!found.is_enabled || !found.has_all_rows())
                throw Failure(follower->server() + " does not follow " + writer_.server() +
                              ", or has not got all rows yet\nHINT:  snowflake-shard global verify "
                              "says why.");
            followers_.push_back({*follower, found});
        }
        require_all(session_, "all servers");
    }

    Names servers_without_change() const
    {
        Names servers;
        for (const Follower& follower : followers_)
            if (follower.subscription.change != change_.id)
                servers.push_back(follower.connection.server());
        return servers;
    }

    /* All servers have the change in open transactions before the first one commits. */
    void change_everywhere(const Publication& publication)
    {
        change_ = {observer_.query("SELECT gen_random_uuid()").text(0, 0), sql_};
        prepare_change(writer_, publication.oids, options_.role);
        for (const Follower& follower : followers_) { /* nobody waits meanwhile */
            prepare_change(follower.connection, follower.subscription.oids, options_.role);
            await_follower(observer_, follower.connection, follower.subscription.slot,
                           timeouts::kCatchUp);
        }
        bool is_committing = false;
        try {
            lock_and_run_naming(writer_, Clock::now() + timeout(), [&] {
                is_committing = false;
                for (const Follower& follower : followers_)
                    follower.connection.rollback(); /* of the last try */
                begin_change(writer_, publication.oids, options_.role);
                await_all_rows();
                for (const Follower& follower : followers_) {
                    follower.connection.run("BEGIN; SET LOCAL lock_timeout = " +
                                            milliseconds_of(timeouts::kOneLock));
                    change(follower);
                }
                run_change(writer_, sql_);
                for (const Follower& follower : followers_)
                    require_equal(follower, {writer_, true});
                comment_in_session(writer_, "pg_publication", kGlobal, comment_of(change_));
                /* Until here nothing was changed, and Ctrl-C may end the process. */
                note_interrupts();
                is_committing = true;
                commit_session(writer_);
            });
        } catch (const Failure& error) {
            if (!is_committing)
                throw Failure(error.what() + std::string("\nNothing was changed."));
            throw Failure(error.what() +
                          std::string("\nThe change is on no follower. It is not known whether it "
                                      "is on the writer.\nHINT:  Run the same command again."));
        }
    }

    /* Waits also for rows whose commit is not flushed yet: the observer's commit flushes them. */
    void await_all_rows()
    {
        observer_.query("SELECT pg_logical_emit_message(true, $1, '')", {kGlobal});
        for (const Follower& follower : followers_)
            await_follower(observer_, follower.connection, follower.subscription.slot, timeout());
    }

    void change(const Follower& follower) const
    {
        begin_change(follower.connection, follower.subscription.oids, options_.role);
        run_change(follower.connection, sql_);
        comment_in_session(follower.connection, "pg_subscription", follower.subscription.name,
                           comment_of({change_.id, ""}));
    }

    /* Compares as verify does, in the transactions of the change. */
    static void require_equal(const Follower& follower, const Reader& writer)
    {
        const auto fail = [&](const std::string& table, const std::string& problem) {
            throw Failure(follower.connection.server() + ": after the change, table " +
                          visible(table) + ": " + visible(problem));
        };
        const Reader changed(follower.connection, true);
        const Names triggers = refusing_triggers(follower.connection);
        Names left = texts_of(changed.query(
            "SELECT srrelid::regclass FROM pg_subscription_rel JOIN pg_subscription AS s ON s.oid "
            "= srsubid WHERE subname = $1",
            {follower.subscription.name}));
        for (const std::string& table : published_tables(writer)) {
            const auto at = std::find(left.begin(), left.end(), table);
            if (at == left.end())
                fail(table, "the subscription does not have it");
            left.erase(at);
            for (const Obstacle& one : find_unpublishable(writer, table))
                fail(table, one.problem);
            for (const TableDifference& one : compare_definitions(writer, changed, table))
                fail(table, one.object + ": " + one.problem);
            if (!has_trigger(changed, table, triggers))
                fail(table, "writes to it are not refused");
        }
        if (!left.empty())
            fail(left[0], "it is not published");
    }

    /* The change is on the writer. */
    void complete()
    {
        Names done = {writer_.server()};
        Names missing;
        std::string errors;
        for (const Follower& follower : followers_)
            try {
                report_.rows.push_back({follower.connection.address().text(),
                                        complete(follower) ? "changed" : "had it already"});
                done.push_back(follower.connection.server());
            } catch (const Failure& error) {
                missing.push_back(follower.connection.server());
                errors += std::string("\n") + error.what();
            }
        if (!missing.empty())
            throw Failure("the change is on " + joined(done, ", ") + ", and was not seen on " +
                          joined(missing, ", ") + ":" + errors +
                          "\nHINT:  Run the same command again: it completes the change. Until "
                          "then, the rows of the global tables may not get there.");
        forget_change(writer_);
    }

    /* Returns false if it was there before. */
    bool complete(const Follower& follower)
    {
        if (follower.connection.is_in_transaction()) {
            commit_session(follower.connection);
            follower.connection.run("COMMIT");
            return true;
        }
        if (follower.subscription.change == change_.id)
            return false;
        lock_and_run_naming(follower.connection, Clock::now() + timeouts::kTableLock, [&] {
            change(follower);
            require_equal(follower, writer_);
            commit_session(follower.connection);
        });
        return true;
    }

    const GlobalOptions& options_;
    const std::string sql_;
    GlobalSession session_;
    Connection& writer_;
    Connection observer_; /* of the writer, whose own connection is in the transaction */
    PendingChange change_;
    std::vector<Follower> followers_;
    Table report_ = {{"server", "state"}, {}};
};

} // namespace

int run_global(const GlobalOptions& options)
{
    return Run(options).execute();
}
