/* snowflake-shard move --shards, --plan: a list of sets. */

#include <algorithm>
#include <atomic>
#include <condition_variable>
#include <mutex>
#include <set>
#include <sstream>

#include "base/interrupt.h"
#include "base/output.h"
#include "base/table.h"
#include "move/command.h"
#include "move/verb.h"
#include "postgres/dsn.h"
#include "postgres/parallel.h"

namespace
{

struct Entry {
    MoveOptions options; /* with the servers of the set */
    Shards shards;
    std::vector<std::string> servers; /* which databases they are */
    std::string state = "not begun";
    std::string error{};
    std::string next{};                     /* command */
    std::optional<std::int64_t> pause = {}; /* milliseconds */
    Laps laps{};                            /* of --rehearse */
    bool has_moved = false;                 /* before this command */
    bool is_taken = false;
    bool differs = false;   /* rows, or reverse replication was not possible */
    std::int64_t bytes = 0; /* as ListedSet has them */
    std::shared_ptr<const Tried> tried{};
};

using Entries = std::vector<Entry>;

/* Each archive takes a file descriptor. If there are more sets, the definition is read and tried
 * again. */
constexpr std::size_t kMostArchives = 200;

MoveCommand move_command_of(const Entry& entry, const MoveOptions& options)
{
    return {options, schemas_in(entry.shards), true};
}

Entry make_entry(const MoveOptions& options, const ListedSet& one, bool begins)
{
    Entry entry = {options, one.shards, {one.source, one.target}};
    entry.bytes = one.bytes;
    /* Clients are led there again, because the command that moved the shard may not have known
     * their routers. Without one, nothing is left to be done. */
    const bool has_routers = !options.pgbouncer.empty() || !options.switch_command.empty();
    if (begins && !one.end_state.empty()) {
        entry.has_moved = true;
        entry.is_taken = !has_routers;
        entry.next = move_command(one.shards, without_secrets(one.from), without_secrets(one.to),
                                  "--complete");
        entry.state = has_routers ? entry.state : one.end_state;
    }
    entry.options.from = one.from;
    entry.options.to = one.to;
    return entry;
}

/* All of them, before the first move. Each look locks its shards as a move does, and releases it.
 * begin() looks again, because the last move of a list can begin hours later. */
Obstacles obstacles_of(Entries& entries, const MoveOptions& options)
{
    std::atomic<std::size_t> next = 0;
    Capacity capacity;
    const auto found_by_each = at_once(static_cast<std::size_t>(options.jobs), [&](std::size_t) {
        Obstacles found;
        /* A common counter and no equal shares, because the trial of a large definition takes
         * longer than others. */
        for (std::size_t i = next++; i < entries.size(); i = next++) {
            if (entries[i].has_moved)
                continue;
            const Prefix prefix(short_title_of(entries[i].shards) + ": ");
            if (entries.size() > 1)
                warn("looking for obstacles, set " + std::to_string(i + 1) + " of " +
                     std::to_string(entries.size()));
            MoveCommand command = move_command_of(entries[i], entries[i].options);
            for (Obstacle& obstacle : command.find_obstacles(capacity)) {
                obstacle.server = short_title_of(entries[i].shards) + ", " + obstacle.server;
                found.push_back(obstacle);
            }
            if (entries.size() <= kMostArchives)
                entries[i].tried = command.tried();
        }
        return found;
    });
    Obstacles all;
    for (const auto& some : found_by_each)
        all.add(some);
    all.add(capacity.find_too_few(options.jobs));
    if (options.is_dry_run)
        capacity.tell(all);
    return all;
}

/* Checks reverse replication of all sets for --undo --reversible, before the first is undone. */
Obstacles find_too_few_for_reverse(const Entries& entries)
{
    Capacity capacity;
    for (const Entry& entry : entries) {
        try {
            move_command_of(entry, in_direction(entry.options)).add_reverse(capacity);
        } catch (const Failure&) {
            /* The undo of that set reports it. The others can be undone. */
        }
    }
    return capacity.find_too_few(0);
}

/* Hands out the sets in their order. A set waits while another set runs that has one of its
 * databases, also by another address. */
class Queue
{
public:
    explicit Queue(Entries& entries) : entries_(entries) {}

    /* Nothing if all sets are taken, or after Ctrl-C. */
    Entry* take()
    {
        std::unique_lock<std::mutex> lock(mutex_);
        for (;;) {
            const auto is_left = [](const Entry& entry) { return !entry.is_taken; };
            if (is_interrupted() || std::none_of(entries_.begin(), entries_.end(), is_left))
                return nullptr;
            const auto found =
                std::find_if(entries_.begin(), entries_.end(),
                             [&](const Entry& entry) { return is_left(entry) && !is_busy(entry); });
            if (found != entries_.end()) {
                found->is_taken = true;
                running_.insert(found->servers.begin(), found->servers.end());
                return &*found;
            }
            /* This wait ends after Ctrl-C, too: a move that runs ends, and is given back. */
            is_free_.wait(lock);
        }
    }

    void give_back(const Entry& entry)
    {
        const std::lock_guard<std::mutex> lock(mutex_);
        tell_ended(entry);
        for (const std::string& server : entry.servers)
            running_.erase(server);
        is_free_.notify_all();
    }

private:
    /* Reports an end in a list of several sets. */
    void tell_ended(const Entry& entry)
    {
        ended_++;
        bytes_ended_ += entry.bytes;
        std::int64_t bytes = 0;
        for (const Entry& one : entries_)
            bytes += one.bytes;
        if (entries_.size() > 1 && bytes > 0)
            warn(std::to_string(ended_) + " of " + count_of(entries_.size(), "set") +
                 " have ended, " + pretty_size(bytes_ended_) + " of " + pretty_size(bytes));
    }

    bool is_busy(const Entry& entry)
    {
        return std::any_of(entry.servers.begin(), entry.servers.end(),
                           [&](const std::string& server) { return running_.count(server) > 0; });
    }

    Entries& entries_;
    std::mutex mutex_;
    std::condition_variable is_free_;
    std::set<std::string> running_; /* databases */
    std::size_t ended_ = 0;
    std::int64_t bytes_ended_ = 0;
};

/* A server that cannot be reached does not hide the error. */
std::string next_after_error(MoveCommand& command)
{
    try {
        return command.next();
    } catch (const Failure&) {
        return "";
    }
}

void move_one(Entry& entry)
{
    const Prefix prefix(short_title_of(entry.shards) + ": ");
    std::string reached;
    try {
        MoveCommand command = move_command_of(entry, in_direction(entry.options));
        command.use(std::exchange(entry.tried, nullptr));
        try {
            entry.differs = command.execute() == kFound;
            entry.state = command.end_state();
            entry.pause = command.pause();
            entry.laps = command.laps();
            entry.next = command.next();
        } catch (const Failure& error) {
            /* The state is not empty if the target is open. paused() asks the consoles, so it is
             * called while the command exists. */
            reached = command.end_state();
            entry.pause = command.pause();
            entry.next = next_after_error(command);
            throw Failure(error.what() + command.paused());
        }
    } catch (const std::exception& error) {
        entry.state = !reached.empty() ? reached : is_interrupted() ? "interrupted" : "failed";
        entry.error = error.what();
        warn(entry.error);
    }
}

/* The error in a row of a table: the first line, the server, and whether the set may be open on the
 * target. */
std::string in_one_line(const std::string& error)
{
    std::string text = first_line(error);
    std::istringstream lines(error);
    for (std::string line; std::getline(lines, line);)
        if (line.rfind("SERVER:", 0) == 0 || line.rfind("It is not known", 0) == 0)
            text += "; " + line;
    return text;
}

/* Prints the laps of the sets that are held. The errors of the others are on standard error. */
void print_rehearsal(const Entries& entries, bool json)
{
    Table table = table_of_laps();
    for (const Entry& entry : entries)
        if (entry.state == kHeld)
            entry.laps.add_to(table, entry.shards);
    print(table, json ? Format::json : Format::table);
}

int print_end(const Entries& entries, const MoveOptions& options)
{
    Table table = {{"shard", "schema", "state", "pause_ms", "error"}, {}};
    /* Too wide for a table; list has it. */
    if (options.json)
        table.columns.emplace_back("next");
    bool has_failed = false;
    bool differs = false;
    for (const Entry& entry : entries) {
        /* After Ctrl-C the rest of the list is not begun. It is not done, so
         * the exit code is 3, too. */
        has_failed = has_failed || !entry.error.empty() || entry.state == "not begun";
        differs = differs || entry.differs;
        for (const Shard& shard : entry.shards) {
            table.rows.push_back({shard.number, shard.schema, entry.state,
                                  entry.pause ? Value(*entry.pause) : Value(),
                                  text_or_null(in_one_line(entry.error))});
            if (options.json)
                table.rows.back().push_back(text_or_null(entry.next));
        }
    }
    if (options.is_rehearsed)
        print_rehearsal(entries, options.json);
    else
        print(table, options.json ? Format::json : Format::table);
    return has_failed ? kFailed : differs ? kFound : kDone;
}

} // namespace

int move_many(const MoveOptions& options)
{
    /* All other verbs act on moves that exist. */
    const bool begins =
        options.verb == Verb::move || options.verb == Verb::resume || options.verb == Verb::hold;
    Entries entries;
    for (const ListedSet& one : read_list(options, begins))
        entries.push_back(make_entry(options, one, begins));
    if (begins) {
        const auto obstacles = obstacles_of(entries, options);
        if (options.is_dry_run || !obstacles.empty())
            return print_obstacles(obstacles, options.json);
    } else if (options.verb == Verb::undo && options.is_reversible) {
        if (const auto obstacles = find_too_few_for_reverse(entries); !obstacles.empty())
            return print_obstacles(obstacles, options.json);
    }
    std::size_t moved = 0;
    for (const Entry& entry : entries)
        moved += entry.has_moved ? entry.shards.size() : 0;
    if (moved > 0)
        warn(count_of(moved, "shard") + " moved by an earlier command");
    /* Ctrl-C ends the command at once up to here, because nothing was changed. */
    note_interrupts();
    Queue queue(entries);
    at_once(static_cast<std::size_t>(options.jobs), [&](std::size_t) {
        while (Entry* entry = queue.take()) {
            move_one(*entry);
            queue.give_back(*entry);
        }
        return true;
    });
    return print_end(entries, options);
}
