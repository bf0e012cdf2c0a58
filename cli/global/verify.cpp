/* snowflake-shard global verify: whether all servers have the same global tables. */

#include <map>

#include "base/clock.h"
#include "base/output.h"
#include "base/table.h"
#include "base/timeouts.h"
#include "cutover/waiting.h"
#include "fleet/failover.h"
#include "global/follower.h"
#include "global/publication.h"
#include "global/session.h"
#include "global/tables.h"
#include "postgres/dsn.h"
#include "postgres/extension.h"
#include "postgres/skipped.h"
#include "replication/comparison.h"
#include "replication/slots.h"
#include "replication/subscription.h"

namespace
{

struct Findings {
    void add(Connection& server, const std::string& kind, const std::string& object,
             const std::string& problem, const std::string& hint)
    {
        table.rows.push_back({kind, server.address().text(), object, problem, hint});
    }

    Table table = {{"finding", "server", "object", "problem", "hint"}, {}};
};

/* A follower against its writer. */
class Check
{
public:
    Check(Connection& writer, Connection& follower, const Publication& publication,
          Findings& findings)
        : writer_(writer), follower_(follower), publication_(publication), findings_(findings),
          subscription_(find_subscription(follower))
    {
    }

    void run()
    {
        /* That of this role would make it a writer. */
        for (const Obstacle& planted : find_publication(follower_).problem)
            add("publication", "publication " + kGlobal, planted.problem, planted.hint);
        if (!publication_.change.id.empty() && subscription_.change != publication_.change.id)
            add("change", "global tables", "it lacks a change of global run",
                "snowflake-shard global run with all servers, and --sql or --file with: " +
                    publication_.change.sql);
        const bool follows = check_subscription();
        std::vector<std::string> comparable;
        for (const std::string& table : publication_.tables)
            if (check_table(table) && follows && has_all_rows(table))
                comparable.push_back(table);
        for (const auto& [table, state] : subscription_.tables)
            if (!has(publication_.tables, table))
                add("table", "table " + table,
                    "the subscription has it, and no table of this name is published",
                    "If it was renamed, give it its name again. If it is global no more: ALTER "
                    "SUBSCRIPTION " +
                        subscription_.quoted + " REFRESH PUBLICATION;");
        if (follows)
            compare(comparable);
    }

    const std::string& slot() const { return subscription_.slot; }

private:
    void add(const std::string& kind, const std::string& object, const std::string& problem,
             const std::string& hint)
    {
        findings_.add(follower_, kind, object, problem, hint);
    }

    std::string servers() const
    {
        return "--on " + shell_quoted(printed_dsn(writer_.address(), writer_.dsn())) + " " +
               shell_quoted(printed_dsn(follower_.address(), follower_.dsn()));
    }
    /* The removal of the last follower takes the publication away, and with it their names. */
    std::string all_tables() const
    {
        std::string names;
        for (const std::string& table : publication_.tables)
            names += shell_quoted(table) + " ";
        return names;
    }

    std::string add_command(const std::string& tables) const
    {
        return "snowflake-shard global add " + tables + servers();
    }

    bool has_all_rows(const std::string& table) const
    {
        const auto at = subscription_.tables.find(table);
        return at != subscription_.tables.end() && at->second == "r";
    }

    /* Whether it can be awaited. */
    bool check_subscription()
    {
        if (subscription_.name.empty()) {
            add("subscription", "global tables", "no subscription follows " + writer_.server(),
                add_command(""));
            return false;
        }
        const std::string object = "subscription " + subscription_.name;
        for (const Obstacle& one : subscription_.problem)
            add("subscription", object, one.problem, one.hint);
        for (const Obstacle& one : find_skipped(follower_, subscription_.name))
            add("subscription", object, one.problem, one.hint);
        for (const Obstacle& one : find_unsynchronized(follower_, subscription_.name))
            add("subscription", object, one.problem, one.hint);
        if (!subscription_.is_enabled)
            add("subscription", object, "it is disabled",
                "ALTER SUBSCRIPTION " + subscription_.quoted + " ENABLE;");
        if (!has_slot(writer_, subscription_.slot)) {
            add("slot", "slot " + subscription_.slot,
                "it is not on " + writer_.server() + ", or has lost WAL: changes are missing here",
                "snowflake-shard global remove " + servers() + "; make the rows equal; " +
                    add_command(all_tables()));
            return false;
        }
        return subscription_.is_enabled && is_read();
    }

    /* A slot that nobody reads at this moment can be that of a worker that is just started. One
     * that has failed meanwhile will do so again. */
    bool is_read()
    {
        const Clock::time_point deadline = Clock::now() + timeouts::kWorkerRestart;
        const std::int64_t failures = count_failures(follower_, subscription_.name);
        for (Pause pause;; pause()) {
            if (::is_read(writer_, subscription_.slot))
                return true;
            if (Clock::now() > deadline || count_failures(follower_, subscription_.name) > failures)
                break;
        }
        add_failed("no worker of it reads slot " + subscription_.slot + " on " + writer_.server());
        return false;
    }

    void add_failed(const std::string& problem)
    {
        const auto failures =
            static_cast<std::size_t>(count_failures(follower_, subscription_.name));
        add("worker", "subscription " + subscription_.name,
            problem + "; its workers have failed " + count_of(failures, "time"),
            "The log of this server says why. A row that was written here can be in the way: its "
            "owner deletes it while the trigger snowflake_global is disabled.");
    }

    /* Whether its rows can be compared. */
    bool check_table(const std::string& table)
    {
        const std::string object = "table " + table;
        if (!has_table(follower_, table)) {
            add("table", object, "it is not there",
                "If it was renamed, give it its name again. Else: " + add_command(""));
            return false;
        }
        bool is_comparable = true;
        for (const TableDifference& one : compare_definitions(writer_, follower_, table)) {
            add("definition", object, one.object + ": " + one.problem, one.hint);
            is_comparable = is_comparable && !one.is_missing_column;
        }
        if (!refuses_writes(follower_, table))
            add("trigger", object,
                "writes to it are not refused: trigger snowflake_global is "
                "missing, changed or disabled",
                add_command(""));
        if (!subscription_.name.empty() && !has_all_rows(table))
            add("rows", object,
                subscription_.tables.count(table) > 0 ? "not all of its rows are there yet"
                                                      : "the subscription does not have it",
                add_command(""));
        return is_comparable;
    }

    /* Rows that change meanwhile are read again, and are no finding. */
    void compare(const std::string& table)
    {
        /* Each text begins with the table, which is the object of the finding. */
        const std::string begin = "table " + table + ": ";
        const FollowerRows found =
            compare_with_follower(writer_, follower_, {table}, subscription_.slot);
        for (const std::string& difference : found.differences)
            add("rows", "table " + table, difference.substr(begin.size()),
                "Correct the rows here: BEGIN; ALTER TABLE " + table +
                    " DISABLE TRIGGER snowflake_global; ... ALTER TABLE " + table +
                    " ENABLE TRIGGER snowflake_global; COMMIT;");
        for (const std::string& unknown : found.unknown)
            add("rows", "table " + table, unknown.substr(begin.size()),
                "Run it again when fewer rows are written to.");
    }

    void compare(const std::vector<std::string>& tables)
    {
        try {
            for (const std::string& table : tables)
                compare(table);
        } catch (const ServerError&) {
            throw;
        } catch (const Failure& error) {
            add_failed(error.what());
        }
    }

    Connection& writer_;
    Connection& follower_;
    const Publication& publication_;
    Findings& findings_;
    const Subscription subscription_;
};

void check_writer(Connection& writer, const Publication& publication, Findings& findings)
{
    for (const Obstacle& one : publication.problem)
        findings.add(writer, "publication", "publication " + kGlobal, one.problem, one.hint);
    for (const std::string& table : publication.tables)
        for (const Obstacle& one : find_unpublishable(writer, table))
            findings.add(writer, "table", "table " + table, one.problem, one.hint);
    const Subscription subscription = find_subscription(writer);
    if (!subscription.name.empty())
        findings.add(writer, "subscription", "subscription " + subscription.name,
                     "this server publishes the global tables, and must not subscribe to them",
                     subscription.problem.empty() ? "" : subscription.problem[0].hint);
}

/* slots: of the followers, each with the first server that reads it. */
void check_slots(Connection& writer, const std::map<std::string, std::string>& slots,
                 Findings& findings)
{
    for (const std::string& slot : slots_of_followers(writer))
        if (slots.count(slot) == 0)
            findings.add(writer, "slot", "slot " + slot,
                         "it is of no server that is given, and keeps WAL",
                         "Give that server, too. If it is gone: SELECT "
                         "pg_drop_replication_slot('" +
                             slot + "');");
}

} // namespace

int verify_global(const GlobalOptions& options)
{
    ServerSet servers(options.dsns, Access::reads, options.keep_going);
    servers.on_all(extension_schema);
    const std::size_t at = find_writer(servers);
    Connection& writer = servers[at].connection;
    writer.run("SET default_transaction_read_only = on");
    const Publication publication = find_publication(writer);
    Findings findings;
    check_writer(writer, publication, findings);
    std::map<std::string, std::string> slots;
    for (std::size_t i = 0; i < servers.size(); i++) {
        if (i == at)
            continue;
        Connection& follower = servers[i].connection;
        follower.run("SET default_transaction_read_only = on");
        Check check(writer, follower, publication, findings);
        const auto [first, is_new] = slots.insert({check.slot(), servers[i].name()});
        if (!check.slot().empty() && !is_new)
            findings.add(follower, "slot", "slot " + check.slot(),
                         "the subscription of " + first->second +
                             " has the same slot, as after a "
                             "split: one of them misses changes",
                         "snowflake-shard global add --on with the writer and both servers.");
        check.run();
    }
    check_slots(writer, slots, findings);
    print_findings(findings.table, options.json,
                   count_of(publication.tables.size(), "global table") + " on " +
                       count_of(servers.size(), "server"));
    return servers.exit_code(findings.table.rows.empty() ? kDone : kFound);
}
