#include "move/command.h"

#include <algorithm>
#include <map>
#include <optional>
#include <set>

#include "base/output.h"
#include "fleet/catalog.h"
#include "fleet/known.h"
#include "move/sets.h"
#include "move/state.h"
#include "postgres/identity.h"
#include "postgres/parallel.h"
#include "postgres/servers.h"

namespace
{

/* A server, as a connection string leads to it. */
struct Place : Known {
    explicit Place(Known known = {}) : Known(std::move(known)) {}

    std::string error;           /* why it could not be read; all else is empty then */
    bool is_wrong_usage = false; /* the error is that of the string */
    std::string identity;
    std::map<int, std::string> twice; /* numbers that several schemas have: find_twice() */
    std::string delay;                /* of each start of a subscription; empty if it is short */
};

/* The places by connection string. */
using Places = std::map<std::string, Place>;

/* From 16 on each subscription has a time of its own. */
std::string read_delay(Connection& connection)
{
    const Result delay = connection.query(
        "SELECT current_setting(name) FROM pg_settings WHERE name = 'wal_retrieve_retry_interval' "
        "AND setting::integer >= 1000 AND current_setting('server_version_num')::integer < 160000");
    return delay.rows() == 0 ? "" : delay.text(0, 0);
}

Place read_place(const std::string& dsn)
{
    Place failed;
    try {
        Server server = connect_to(dsn, Access::reads);
        Place place(read_known(server.connection));
        place.identity = identify(server.connection).text();
        place.twice = find_twice(server.connection, place.open);
        place.delay = read_delay(server.connection);
        return place;
    } catch (const UsageError& error) {
        failed.error = error.what();
        failed.is_wrong_usage = true;
    } catch (const Failure& error) {
        failed.error = error.what();
    }
    return failed;
}

Places read_places(const std::set<std::string>& distinct)
{
    const std::vector<std::string> dsns(distinct.begin(), distinct.end());
    const auto read = at_once(dsns.size(), [&](std::size_t i) { return read_place(dsns[i]); });
    Places places;
    for (std::size_t i = 0; i < dsns.size(); i++)
        places.emplace(dsns[i], read[i]);
    return places;
}

/* The problem of an entry whose servers could be read; empty if there is none. The source comes
 * first, as in a Session: only the target has the shard when the old rows have been dropped. */
std::string problem_of(const PlanEntry& entry, const Place& source, const Place& target,
                       bool begins)
{
    for (const Place* const place : {&source, &target}) {
        const auto shard = place->find(entry.schema);
        if (!shard)
            continue;
        if (shard->number != entry.number)
            return "schema " + entry.schema + " is shard " + std::to_string(shard->number) +
                   " on " + place->server + ", not " + std::to_string(entry.number);
        const auto twice = source.twice.find(entry.number);
        /* A move that has begun goes to its end: its record names the schema. */
        const bool would_begin = begins && place == &source &&
                                 source.find_move(entry.schema) == nullptr &&
                                 target.find_move(entry.schema) == nullptr;
        return would_begin && twice != source.twice.end() ? twice->second : "";
    }
    return "schema " + entry.schema + " is no shard of " + source.server + " or " + target.server;
}

class Problems
{
public:
    void add(const std::string& problem, bool is_wrong_usage)
    {
        text_ += problem + "\n";
        is_wrong_usage_ = is_wrong_usage_ || is_wrong_usage;
    }

    void raise() const
    {
        const std::string text = text_ + "Nothing was done.";
        if (is_wrong_usage_)
            throw UsageError(text);
        if (!text_.empty())
            throw Failure(text);
    }

private:
    std::string text_;
    bool is_wrong_usage_ = false;
};

/* Entries of a file are named by their places in it, those of --shards by their numbers alone. */
class List
{
public:
    List(std::vector<PlanEntry> entries, Places places, bool is_file)
        : entries_(std::move(entries)), places_(std::move(places)), is_file_(is_file)
    {
    }

    void require_right(bool begins) const
    {
        Problems problems;
        for (const auto& [dsn, place] : places_)
            if (!place.error.empty() && (begins || place.is_wrong_usage))
                problems.add(entries_of(dsn) + place.error, place.is_wrong_usage);
        for (std::size_t i = 0; i < entries_.size(); i++) {
            const Place& source = places_.at(entries_[i].from);
            const Place& target = places_.at(entries_[i].to);
            if (!source.error.empty() || !target.error.empty())
                continue;
            if (source.identity == target.identity)
                problems.add(title(i) + "both servers are the same: " + source.server, true);
            else if (const std::string problem = find_problem(i, begins); !problem.empty())
                problems.add(title(i) + problem, false);
        }
        problems.raise();
    }

    /* Each server once, also by another address. */
    void tell_of_delays(bool is_reversible) const
    {
        std::map<std::string, const Place*> subscribers;
        for (const PlanEntry& entry : entries_) {
            subscribers.emplace(identity(entry.to), &places_.at(entry.to));
            if (is_reversible)
                subscribers.emplace(identity(entry.from), &places_.at(entry.from));
        }
        for (const auto& [identity, place] : subscribers)
            if (!place->delay.empty())
                warn(place->server + ": wal_retrieve_retry_interval = " + place->delay +
                     ". Before PostgreSQL 16 a server starts one subscription in this time, so "
                     "each set waits for it.\nHINT:  ALTER SYSTEM SET "
                     "wal_retrieve_retry_interval = '200ms'; SELECT pg_reload_conf(); "
                     "and ALTER SYSTEM RESET it after the moves.");
    }

    std::vector<ListedMove> moves() const
    {
        std::vector<ListedMove> moves;
        for (const PlanEntry& entry : entries_)
            moves.push_back({entry, identity(entry.from), identity(entry.to),
                             end_state(entry, places_.at(entry.from), places_.at(entry.to)),
                             record_of(entry), oid_of(entry)});
        return moves;
    }

private:
    static std::string end_state(const PlanEntry& entry, const Place& source, const Place& target)
    {
        const auto has_shard = [&](const Place& place) {
            return std::any_of(place.open.begin(), place.open.end(), [&](const Shard& shard) {
                return shard.number == entry.number && shard.schema == entry.schema;
            });
        };
        const auto read = [&](const Place& place) -> std::optional<MoveState> {
            const MoveState* const move = place.find_move(entry.schema);
            return move == nullptr ? std::nullopt : std::optional(*move);
        };
        const Phase phase = phase_of(read(source), read(target));
        if (!has_shard(target))
            return "";
        const bool has_left = phase == Phase::none && !has_shard(source);
        return phase == Phase::reverse             ? kMoved + kWithReverse
               : phase == Phase::moved || has_left ? kMoved
                                                   : "";
    }

    /* The set with which it moves, by a record. */
    ShardSet record_of(const PlanEntry& entry) const
    {
        for (const std::string& dsn : {entry.from, entry.to})
            if (const MoveState* const move = places_.at(dsn).find_move(entry.schema))
                return numbers_of(move->shards);
        return {};
    }

    std::string oid_of(const PlanEntry& entry) const
    {
        for (const Shard& shard : places_.at(entry.from).open)
            if (shard.number == entry.number && shard.schema == entry.schema)
                return shard.oid;
        return "";
    }

    /* The shards of the set that the list does not take to the same server. */
    ShardSet find_left_out(const PlanEntry& entry) const
    {
        ShardSet left_out = record_of(entry);
        for (const PlanEntry& other : entries_)
            if (other.from == entry.from && other.to == entry.to)
                left_out.erase(other.number);
        return left_out;
    }

    std::string find_problem(std::size_t i, bool begins) const
    {
        const PlanEntry& entry = entries_[i];
        try {
            if (!find_left_out(entry).empty())
                return "it moves with its set, shards " + format_shards(record_of(entry)) +
                       ", and all of them are to be named";
            return problem_of(entry, places_.at(entry.from), places_.at(entry.to), begins);
        } catch (const Failure& error) {
            return error.what();
        }
    }

    std::string identity(const std::string& dsn) const
    {
        const Place& place = places_.at(dsn);
        return place.error.empty() ? place.identity : dsn;
    }

    std::string title(std::size_t i) const
    {
        return (is_file_ ? "entry " + std::to_string(i + 1) + ", " : "") + "shard " +
               std::to_string(entries_[i].number) + ": ";
    }

    /* "entries 1,4-7: " */
    std::string entries_of(const std::string& dsn) const
    {
        ShardSet numbers;
        for (std::size_t i = 0; i < entries_.size(); i++)
            if (entries_[i].from == dsn || entries_[i].to == dsn)
                numbers.insert(static_cast<int>(i + 1));
        return !is_file_
                   ? ""
                   : (numbers.size() == 1 ? "entry " : "entries ") + format_shards(numbers) + ": ";
    }

    const std::vector<PlanEntry> entries_;
    const Places places_;
    const bool is_file_;
};

/* The source no longer lists a shard that has moved: its schema is in the state of the move, or on
 * the target. */
void find_schemas(const Place& place, std::map<int, std::string>& schemas, Problems& problems,
                  const ShardSet& wanted)
{
    for (const MoveState& move : place.moves)
        for (const Shard& shard : move.shards)
            schemas.emplace(shard.number, shard.schema);
    for (const Shard& shard : place.open)
        if (wanted.count(shard.number) > 0 && schemas.emplace(shard.number, shard.schema).second &&
            place.twice.count(shard.number) > 0)
            problems.add(place.twice.at(shard.number), false);
}

/* Both servers are needed here, also to end moves: they tell which schema a number is. */
List list_of_shards(const MoveOptions& options)
{
    const Places places = read_places({options.from, options.to});
    const Place& source = places.at(options.from);
    const Place& target = places.at(options.to);
    Problems problems;
    for (const auto& one : places)
        if (!one.second.error.empty())
            problems.add(one.second.error, one.second.is_wrong_usage);
    problems.raise();
    const ShardSet wanted = parse_shards(options.shards);
    std::map<int, std::string> schemas;
    find_schemas(source, schemas, problems, wanted);
    find_schemas(target, schemas, problems, wanted);
    std::vector<PlanEntry> entries;
    ShardSet missing;
    for (const int number : wanted)
        if (schemas.count(number) > 0)
            entries.push_back({number, schemas[number], options.from, options.to});
        else
            missing.insert(number);
    /* A wrong number must not be found when half of the list has moved. */
    if (!missing.empty())
        problems.add(count_of(missing.size(), "shard") + " not on " + source.server + " or " +
                         target.server + ": " + format_shards(missing),
                     false);
    problems.raise();
    return {entries, places, false};
}

List list_of_plan(const MoveOptions& options)
{
    const std::vector<PlanEntry> entries = read_plan(options.plan);
    std::set<std::string> dsns;
    for (const PlanEntry& entry : entries)
        dsns.insert({entry.from, entry.to});
    return {entries, read_places(dsns), true};
}

} // namespace

std::vector<ListedSet> read_list(const MoveOptions& options, bool begins)
{
    const List list = options.plan.empty() ? list_of_shards(options) : list_of_plan(options);
    list.require_right(begins);
    std::vector<ListedSet> sets = sets_of(list.moves(), options, begins);
    if (begins && sets.size() > 1)
        list.tell_of_delays(options.is_reversible);
    return sets;
}
