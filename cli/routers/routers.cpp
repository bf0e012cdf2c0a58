#include "routers/routers.h"

#include <algorithm>
#include <future>
#include <set>
#include <utility>

#include "base/match.h"
#include "base/output.h"
#include "postgres/process.h"

namespace
{

/* Since 1.26 PgBouncer keeps every setting that a server reports (GUC_REPORT), and not only those
 * that all versions report. */
bool keeps_all_reported(const std::string& pooler)
{
    const auto version = match(pooler, "^([0-9]{1,4})\\.([0-9]{1,4})");
    return !version.empty() &&
           std::make_pair(std::stoi(version[1]), std::stoi(version[2])) >= std::make_pair(1, 26);
}

/* The first versions of PostgreSQL that report these. */
constexpr int kScramIterations = 160000; /* the setting is new there */
constexpr int kSearchPath = 180000;

/* Why the clients of an alias are disconnected; empty if they stay connected. pooler: "1.26.1", its
 * version; source, target: 150018, as PQserverVersion() has it; has_query: whether the alias has a
 * connect_query, asked if that matters.
 *
 * A client has the settings that the server had when it connected, and a new client those that the
 * pool of the alias has ever had: a RELOAD does not remove them. In each connection that a client
 * gets, PgBouncer SETs its value of a setting, and RESETs a setting of which the client has none.
 * KILL removes the pool, with its clients. */
std::string why_disconnected(const std::string& pooler, int source, int target,
                             const std::function<bool()>& has_query)
{
    if (!keeps_all_reported(pooler))
        return "";
    if (source >= kScramIterations && target < kScramIterations)
        return "it would set scram_iterations for them, which PostgreSQL before 16 does not know, "
               "and refuse them";
    if (source < kSearchPath && target >= kSearchPath && has_query())
        return "it would reset search_path for them, which PostgreSQL reports since 18, and so "
               "undo connect_query";
    return "";
}

bool has_query_in(const std::string& text, const Aliases& aliases)
{
    for (const auto& [alias, lines] : lines_of(text, aliases))
        if (std::any_of(lines.begin(), lines.end(),
                        [](const AliasLine& line) { return line.has_query; }))
            return true;
    return false;
}

PoolerHost host_of(const PgBouncer& bouncer)
{
    return PoolerHost(bouncer.pooler().command);
}

bool leads_elsewhere(PgBouncer& bouncer, const Address& place)
{
    const auto places = bouncer.places();
    return std::any_of(places.begin(), places.end(),
                       [&](const auto& one) { return !(one.second == place); });
}

/* Once for all moves of this process. */
bool is_first_time(const std::string& text)
{
    static std::mutex mutex;
    static std::set<std::string> told;
    const std::lock_guard<std::mutex> lock(mutex);
    return told.insert(text).second;
}

} // namespace

Routers::Routers(Routing routing, std::string opened)
    : routing_(std::move(routing)), opened_(std::move(opened))
{
    /* All keys are inserted here: the threads of each() find theirs, and never change the map. */
    for (const Pooler& pooler : routing_.poolers)
        edited_[&bouncers_.emplace_back(pooler)] = {};
}

/* All at once: one that is slow or dead does not keep the clients of the others waiting. */
std::vector<Routers::Problem> Routers::each(const std::function<void(PgBouncer&)>& work)
{
    std::vector<std::future<Problem>> running;
    for (PgBouncer& bouncer : bouncers_)
        running.push_back(std::async(std::launch::async, [&work, &bouncer]() -> Problem {
            try {
                work(bouncer);
                return {nullptr, ""};
            } catch (const std::exception& error) {
                return {&bouncer, bouncer.name() + ", " + named(bouncer.pooler().aliases) + ": " +
                                      error.what()};
            }
        }));
    std::vector<Problem> problems;
    for (auto& one : running)
        if (Problem problem = one.get(); problem.bouncer != nullptr)
            problems.push_back(std::move(problem));
    return problems;
}

Obstacles Routers::find_obstacles(Connection& source)
{
    Obstacles found;
    for (PgBouncer& bouncer : bouncers_)
        found.add(::find_obstacles(bouncer, source));
    return found;
}

int Routers::connections()
{
    int count = 0;
    for (PgBouncer& bouncer : bouncers_)
        count += bouncer.connections();
    return count;
}

Edit Routers::edit_of(const PgBouncer& bouncer, const Address& place)
{
    return [&bouncer, place, &made = edited_[&bouncer]](const std::string& text) {
        /* The text is edited before clients are held, and used while they are; it is edited again
         * if somebody has changed the file since. */
        if (made.before != text || made.place != place.text())
            made = {text, place.text(), with_place(text, bouncer.pooler().aliases, place),
                    has_query_in(text, bouncer.pooler().aliases)};
        return made.after;
    };
}

void Routers::tell_of_disconnected(const Connection& source, const Connection& target)
{
    for (PgBouncer& bouncer : bouncers_) {
        std::string version;
        std::string why;
        try {
            version = bouncer.version();
            why = why_disconnected(version, source.version(), target.version(), [&] {
                return has_query_in(host_of(bouncer).read(bouncer.pooler().file),
                                    bouncer.pooler().aliases);
            });
        } catch (const Failure&) {
            continue; /* an obstacle, which says it */
        }
        const std::string text =
            bouncer.name() + " is of version " + version +
            ". Clients are disconnected when they are led from PostgreSQL " +
            std::to_string(source.version() / 10000) + " to " +
            std::to_string(target.version() / 10000) + ": " + why +
            "\nHINT:  They have to connect again: docs/pgbouncer.md#pgbouncer-126.";
        const Prefix none("");
        if (!why.empty() && is_first_time(text))
            warn(text);
    }
}

void Routers::wait_for_turn()
{
    /* The mutex is for all moves of this process. lead_to() comes here without a cutover before it,
     * after --resume. */
    static std::mutex mutex;
    if (!bouncers_.empty() && !turn_.owns_lock())
        turn_ = std::unique_lock<std::mutex>(mutex);
}

void Routers::make_ready(Connection& source, const Connection& target)
{
    std::string text;
    /* In a new move no client is held yet, and the fence does not stand: an error here stops
     * nobody. */
    for (const Obstacle& obstacle : find_obstacles(source))
        text += "\n" + obstacle.text();
    if (!text.empty())
        throw Failure("PgBouncer cannot be led to the target:" + text);
    for (const PgBouncer& bouncer : bouncers_)
        host_of(bouncer).prepare(bouncer.pooler().file, edit_of(bouncer, target.address()));
}

/* Pauses the aliases before the fence: a client that waits in PgBouncer does not get the SQLSTATE
 * 25006 of a fenced shard. */
void Routers::pause(Clock::time_point deadline)
{
    /* All are asked before any is paused: the clients of the others would wait until the deadline
     * for one that does not answer. */
    auto problems = each([&](PgBouncer& bouncer) { bouncer.require_answer(deadline); });
    if (problems.empty()) {
        pause_ = Clock::now();
        problems = each([&](PgBouncer& bouncer) { bouncer.pause(deadline); });
    }
    if (problems.empty())
        return;
    std::string text = "not every client was held:";
    for (const Problem& problem : problems)
        text += "\n" + problem.text;
    throw Late(text);
}

void Routers::tell_pause()
{
    if (pause_ != Clock::time_point() && !bouncers_.empty())
        warn("PgBouncer held its clients for " + std::to_string(milliseconds_since(pause_)) +
             " ms");
    pause_ = {};
}

bool Routers::resume()
{
    const auto problems = each([](PgBouncer& bouncer) { bouncer.resume(); });
    tell_pause();
    for (const Problem& problem : problems)
        warn(problem.text);
    return problems.empty();
}

std::string Routers::run_command(const Connection& target,
                                 std::vector<std::vector<std::string>> variables)
{
    if (routing_.command.empty())
        return "";
    warn("--switch-command: " + routing_.command);
    for (std::vector<std::string>& environment : variables) {
        for (const std::string& place :
             {"HOST=" + target.host(), "PORT=" + target.port(), "DBNAME=" + target.database()})
            environment.push_back(place);
        if (const std::string end = run_shell(routing_.command, environment); !end.empty())
            return "--switch-command " + end + ": " + routing_.command;
    }
    return "";
}

/* The command runs first, while all clients are held: if it fails, no alias is resumed, and
 * --resume runs it again while clients are held. Each PgBouncer lets its clients go as soon as it
 * leads them to the target: one that hangs does not keep the clients of the others waiting. All of
 * this may run twice: --resume begins here. */
void Routers::lead_to(const Connection& source, const Connection& target,
                      const std::vector<std::vector<std::string>>& variables)
{
    wait_for_turn();
    const Address place = target.address();
    const std::string of_command = run_command(target, variables);
    const auto problems = each([&](PgBouncer& bouncer) {
        host_of(bouncer).replace(bouncer.pooler().file, edit_of(bouncer, place));
        /* This comes before the RELOAD, so that the command repeats it if it was killed in between.
         */
        if (leads_elsewhere(bouncer, place) &&
            !why_disconnected(bouncer.version(), source.version(), target.version(), [&] {
                 return edited_[&bouncer].has_query;
             }).empty())
            bouncer.disconnect_clients();
        bouncer.reload(place);
        if (of_command.empty())
            bouncer.resume();
    });
    std::string text = of_command.empty() ? "" : "\n" + of_command;
    for (const Problem& problem : problems)
        text += "\n" + problem.text;
    if (!text.empty())
        throw Failure(opened_ + " open on " + target.server() +
                      ", and not every client is led there:" + text);
    tell_pause();
    turn_ = {};
}

void Routers::discard_prepared()
{
    for (const Pooler& pooler : routing_.poolers)
        PoolerHost(pooler.command).discard_prepared(pooler.file);
}

std::string Routers::paused(const std::string& remedy)
{
    std::string text;
    for (PgBouncer& bouncer : bouncers_)
        if (const auto [aliases, is_sure] = bouncer.paused(); !aliases.empty()) {
            const bool is_one = aliases.size() == 1;
            text += "\n" + named(aliases) + " of " + bouncer.name() +
                    (!is_sure ? " may be paused"
                     : is_one ? " is paused"
                              : " are paused") +
                    ", and " + (is_one ? "its" : "their") + " clients wait: " + remedy;
        }
    return text;
}
