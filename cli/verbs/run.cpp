/* snowflake-shard run: changes of the schema in every shard. */

#include <algorithm>
#include <atomic>
#include <list>
#include <memory>

#include "base/interrupt.h"
#include "base/output.h"
#include "base/shard_states.h"
#include "fleet/in_transit.h"
#include "fleet/placement.h"
#include "fleet/superusers.h"
#include "verbs/apply.h"
#include "verbs/record.h"
#include "verbs/reporter.h"

namespace
{

/* The shards of a server. Each of its connections takes the next one. */
struct Work {
    std::string server;
    std::list<Connection> more; /* connections beside the first */
    std::vector<ShardState> shards;
    /* A pointer, because a std::atomic cannot be moved, and a vector of Work moves its elements. */
    std::unique_ptr<std::atomic<std::size_t>> next = std::make_unique<std::atomic<std::size_t>>(0);
};

/* A number of two schemas, a session that is not possible, a changed text
 * and a record that cannot be read are errors before anything runs. This looks
 * without a lock: apply() reads the record again under its lock, so a change that another run makes
 * meanwhile is not made twice. */
ShardState look_at(const Shard& shard, const std::string& server, const std::string& problem,
                   const Record& record, const std::vector<Change>& changes)
{
    ShardState state = {shard, "had it already", "", server, ""};
    try {
        if (!problem.empty())
            throw Failure(problem);
        for (const Change& change : changes)
            if (change.name.empty() || !record.has(change))
                state.state = "not done";
    } catch (const Failure& error) {
        state.state = "failed";
        state.error = error.what();
    }
    return state;
}

Work prepare(Server& server, const ShardSet& numbers, const std::vector<Change>& changes,
             const RunOptions& options)
{
    Work work;
    work.server = server.name();
    warn_of_unread_records(server.connection);
    std::map<std::string, Record> records;
    /* Either all changes have names, or there is one without. */
    if (!changes[0].name.empty())
        records = read_records(server.connection);
    const std::vector<Shard> all = read_shards(server.connection);
    const std::map<int, std::string> twice = find_twice(server.connection, all);
    const std::vector<Shard> chosen = choose_shards(all, numbers);
    tell_reader_of_superusers_shards(server.connection, chosen);
    std::map<std::string, std::string> problems = find_session_problems(server.connection, chosen);
    std::size_t left = 0;
    for (const Shard& shard : chosen) {
        if (const auto found = twice.find(shard.number); found != twice.end())
            problems[shard.oid] = found->second;
        work.shards.push_back(
            look_at(shard, work.server, problems[shard.oid], records[shard.oid], changes));
        left += work.shards.back().state == "not done" ? 1 : 0;
    }
    /* Opened before the first change runs: a connection that fails, as at max_connections, is an
     * error while nothing is done. No more than there are shards to change. */
    for (std::size_t i = 1; i < std::min(left, static_cast<std::size_t>(options.jobs)); i++)
        work.more.emplace_back(server.dsn());
    const auto first =
        std::find_if(work.shards.begin(), work.shards.end(),
                     [](const ShardState& state) { return state.state == "not done"; });
    if (first != work.shards.end())
        require_workers(server.connection, work.more, first->shard);
    return work;
}

/* All changes in all shards, over all connections. */
class Run
{
public:
    Run(const RunOptions& options, const std::vector<Change>& changes, std::vector<Work>& work)
        : options_(options), changes_(changes), work_(work), reporter_(options.json)
    {
    }

    /* Returns the states of all shards. An error of a shard is in its state, and is not thrown. */
    std::vector<ShardState> run(ServerSet& servers)
    {
        each_shard([&](const ShardState& state) {
            if (state.state == "not done")
                return progress_.expect(1);
            reporter_.print(state);
            /* Found by look_at(): no change runs in any shard, unless some may fail. */
            if (state.state == "failed")
                count_failure();
        });
        if (options_.canary > 0) {
            const int before = failures_;
            choose_canaries();
            work_through(servers);
            canaries_.clear();
            is_stopped_ = is_stopped_ || failures_ > before;
            for (Work& of_server : work_)
                *of_server.next = 0;
        }
        work_through(servers);
        std::vector<ShardState> states;
        each_shard([&](const ShardState& state) {
            /* Printed last: as long as a connection is at work, a shard that is not done may still
             * be done. */
            if (state.state == "not done")
                reporter_.print(state);
            states.push_back(state);
        });
        return states;
    }

private:
    template <typename Function>
    void each_shard(Function function)
    {
        for (const Work& of_server : work_)
            for (const ShardState& state : of_server.shards)
                function(state);
    }

    void work_through(ServerSet& servers)
    {
        on_all_connections(servers, work_,
                           [&](Connection& connection, Work& work) { work_on(connection, work); });
    }

    /* Takes the shards with the lowest numbers. */
    void choose_canaries()
    {
        each_shard([&](const ShardState& state) {
            if (state.state == "not done" && !state.shard.schema.empty())
                canaries_.insert(state.shard.number);
        });
        while (canaries_.size() > static_cast<std::size_t>(options_.canary))
            canaries_.erase(std::prev(canaries_.end()));
    }

    bool is_turn_of(const ShardState& state) const
    {
        return state.state == "not done" &&
               (canaries_.empty() || canaries_.count(state.shard.number) > 0);
    }

    void count_failure()
    {
        failures_++;
        is_stopped_ = is_stopped_ || (!options_.keep_going && failures_ >= options_.max_failures);
    }

    void work_on(Connection& connection, Work& work)
    {
        /* A connection that is lost, and cannot be opened again, takes no more shards; with
         * --keep-going the server's other connections take them. After an error or Ctrl-C each
         * connection ends the shard that it is at. */
        while (connection.is_alive() && !is_stopped_ && !is_interrupted()) {
            const std::size_t i = (*work.next)++;
            if (i >= work.shards.size())
                return;
            ShardState& state = work.shards[i];
            if (!is_turn_of(state))
                continue;
            change(connection, state);
            if (state.state != "not done")
                reporter_.print(state);
            /* By the error and not by the state: after a lost connection the shard is "not done"
             * with an error. */
            if (!state.error.empty())
                count_failure();
            if (!is_stopped_)
                reopen_if_lost(connection);
            progress_.step();
        }
    }

    void change(Connection& connection, ShardState& state)
    {
        /* "failed" unless something better is known: that is right for every Failure. */
        const std::string before = std::exchange(state.state, "failed");
        connection.label("shard " + std::to_string(state.shard.number) + ": ");
        try {
            state.state =
                apply(connection, state.shard, changes_, options_) ? "done" : "had it already";
        } catch (const ServerError& error) {
            state.error = error.what();
            state.sqlstate = error.sqlstate;
            if (!connection.is_alive()) /* before COMMIT was sent: it is rolled back */
                state.state = before;
        } catch (const Failure& error) {
            state.error = error.what();
            is_stopped_ = is_stopped_ || dynamic_cast<const WrongForAll*>(&error) != nullptr;
        }
        /* Ends a transaction that the SQL has left open, too. It is never an error, so the next
         * shard starts clean. */
        connection.rollback();
        connection.label("");
    }

    const RunOptions& options_;
    const std::vector<Change>& changes_;
    std::vector<Work>& work_;
    Reporter reporter_;
    Progress progress_{"run"};
    ShardSet canaries_; /* empty: the turn of all */
    std::atomic<int> failures_ = 0;
    std::atomic<bool> is_stopped_ = false;
};

/* The shards that no server has, because one was left out. If none was left out, require_none()
 * throws, and nothing has run. They are "not done" without schema and server, so that the output
 * and the exit code account for every shard that was asked for. */
Work missing_of(ServerSet& servers, ShardSet numbers, const std::vector<Work>& work)
{
    for (const Work& of_server : work)
        for (const ShardState& state : of_server.shards)
            numbers.erase(state.shard.number);
    require_none(servers, numbers);
    Work missing;
    for (const int number : numbers)
        missing.shards.push_back({{number, "", ""}, "not done", "", "", ""});
    return missing;
}

int end_run(ServerSet& servers, std::vector<ShardState> states, bool json)
{
    std::sort(states.begin(), states.end(), [](const ShardState& one, const ShardState& two) {
        return one.shard.number < two.shard.number;
    });
    return servers.exit_code(json ? exit_code_of(states) : print_states(states, false));
}

/* The states after --dry-run. A shard of a server that was left out stays "not done". */
std::vector<ShardState> show_due(const std::vector<Work>& work, bool json)
{
    Reporter reporter(json);
    std::vector<ShardState> states;
    for (const Work& of_server : work)
        for (ShardState state : of_server.shards) {
            if (state.state == "not done" && !state.shard.schema.empty())
                state.state = "to be done";
            reporter.print(state);
            states.push_back(state);
        }
    return states;
}

} // namespace

int run_on_shards(const RunOptions& options)
{
    std::vector<Change> changes = read_changes(options);
    ShardSet numbers;
    if (options.shards != "all")
        numbers = parse_shards(options.shards);
    ServerSet servers(options.dsns, Access::writes, options.keep_going);
    if (options.shards == "all")
        for (const std::vector<Shard>& shards : read_shards(servers))
            numbers.merge(numbers_of(shards));
    /* A move that begins after this check compares the definition with the one that it has copied,
     * before the fence, and stops if they differ. */
    require_unmoved(servers, numbers);
    check_statements(servers[0].connection, changes, options);
    add_hashes(servers[0].connection, changes);
    std::vector<Work> work = servers.on_each(
        [&](std::size_t i) { return prepare(servers[i], numbers, changes, options); });
    /* After those of the servers: on_all_connections() has no connection for it, so nothing runs
     * there. */
    work.push_back(missing_of(servers, numbers, work));
    if (options.is_dry_run)
        return end_run(servers, show_due(work, options.json), options.json);
    /* The run ends after the shards that it is at, so that it can say which are done. Not earlier:
     * until here nothing was changed, and Ctrl-C may end the process. */
    note_interrupts();
    return end_run(servers, Run(options, changes, work).run(servers), options.json);
}
