/* snowflake-shard move: shards go to another server while they are written to.
 *
 * The state of a move is in the two databases: each has a schema snowflake_move_N with a row of
 * state. Every step reads both servers and skips its completed parts, so that a move that was
 * killed is resumed by running all steps again. The source says that a move exists; the target says
 * whether the shard is open there. */

#include <algorithm>

#include "base/output.h"
#include "base/quoting.h"
#include "fleet/catalog.h"
#include "fleet/published.h"
#include "fleet/superusers.h"
#include "move/command.h"
#include "move/obstacles.h"
#include "move/replication.h"
#include "move/reverse.h"
#include "postgres/dsn.h"
#include "postgres/trust.h"

namespace
{

/* CLI11 does not know which of the arguments go together. */
void require_arguments(const MoveOptions& options)
{
    std::string problem;
    if (!options.plan.empty() + !options.shards.empty() + !options.schema.empty() != 1)
        problem = "one of these is needed: a schema, --shards, --plan";
    else if (options.plan.empty() && (options.from.empty() || options.to.empty()))
        problem = "--from and --to are needed";
    else if (!options.plan.empty() && !(options.from.empty() && options.to.empty()))
        problem = "--plan has the servers: no --from, no --to";
    if (!problem.empty())
        throw UsageError("move: " + problem +
                         "\nHINT:  snowflake-shard move --help shows its arguments.");
}

} // namespace

MoveCommand::MoveCommand(const MoveOptions& options, const std::vector<std::string>& schemas,
                         bool is_one_of_many)
    : options_(options), is_one_of_many_(is_one_of_many),
      session_(options.from, options.to, schemas),
      cutover_(routing(), move_.is_one() ? "the shard is" : "the shards are", options,
               command_with(options.verb == Verb::undo      ? "--undo"
                            : options.verb == Verb::cutover ? "--cutover"
                                                            : "--resume") +
                   " goes on"),
      source_dsn_(dsn_of(source_, options.source)), target_dsn_(dsn_of(target_, options.target))
{
}

/* Adds the routers that the source keeps, for a move to be resumed or aborted. A move that
 * continues leads clients, also if it was begun by another command. At the step moved the command
 * of another router has been run, because lead_to() comes before that step. */
Routing MoveCommand::routing()
{
    Routing routing = given_routing(options_, aliases_of(options_.alias, numbers_of(move_.shards),
                                                         !is_one_of_many_ && move_.is_one()));
    const Standing now = standing();
    const bool leads = act_of(phase(now), verb()) == Act::goes_on && !options_.is_dry_run;
    if (now.source() && now.source()->is_of_source())
        add_kept_routing(source_, move_.name, leads, leads && now.source()->step != Step::moved,
                         routing);
    else if (verb() == Verb::complete && now.phase() == Phase::reverse)
        add_kept_routing(target_, move_.name, false, false,
                         routing); /* of an undo that was killed */
    return routing;
}

/* --abort, --undo and --complete work with the options in the records. Options that are not stored
 * are given again: addresses and the command of another router. Passwords are
 * not shown. An undo exchanges the options, and --undo takes the servers of its move. */
std::string MoveCommand::command_with(const std::string& option) const
{
    const bool is_exchanged = option == "--undo";
    std::string more;
    const auto add = [&](const char* name, const std::string& dsn) {
        if (!dsn.empty())
            more += name + shell_quoted(without_secrets(dsn)) + " ";
    };
    if (option == "--undo" || option == "--resume" || option == "--cutover") {
        add("--source ", is_exchanged ? options_.target : options_.source);
        add("--target ", is_exchanged ? options_.source : options_.target);
        if (const auto given = options_with_commands(given_routing(options_, {}).poolers);
            !given.empty())
            more += given + " ";
        if (!options_.switch_command.empty())
            more += "--switch-command " + shell_quoted(options_.switch_command) + " ";
    }
    return move_command(move_.shards, without_secrets(is_exchanged ? options_.to : options_.from),
                        without_secrets(is_exchanged ? options_.from : options_.to), more + option);
}

std::vector<std::vector<std::string>> MoveCommand::variables() const
{
    std::vector<std::vector<std::string>> of_each;
    for (const Shard& shard : move_.shards)
        of_each.push_back({"SHARD=" + std::to_string(shard.number), "SCHEMA=" + shard.schema});
    return of_each;
}

/* This check comes last, because the shard can have left the target again. */
void MoveCommand::require_there()
{
    if (const Shards missing = find_missing(read_shards(target_), move_.shards); !missing.empty())
        throw Failure(missing[0].title() + ", has left " + source_.server() + " for " +
                      target_.server() + ", and is not there any more");
}

/* A loop over moves can be started again. Routers that are given are led there again, because the
 * command that moved the shard may not have known them. */
int MoveCommand::lead_there(const Standing& now)
{
    require_there();
    warn(move_.title() + (move_.is_one() ? ", is at " : " are at ") + target_.server() +
         " already");
    if (!options_.pgbouncer.empty() || !options_.switch_command.empty())
        routers_.lead_to(source_, target_, variables());
    return end(now.phase() == Phase::reverse ? done() + kWithReverse : done());
}

void MoveCommand::add_reverse(Capacity& capacity)
{
    const Standing now = standing();
    if (now.phase() != Phase::moved && now.source() && now.source()->is_of_source() &&
        (now.source()->is_reversible || options_.is_reversible))
        capacity.add_reverse(session_.servers, has_slot(target_, move_.back_slot));
}

void MoveCommand::add_rows(Capacity& capacity)
{
    tell_of_superusers_shards(source_, move_.shards);
    capacity.add_rows(session_.servers, move_.shards);
}

Obstacles MoveCommand::find_obstacles(Capacity& capacity)
{
    const Standing now = standing();
    switch (act_of(phase(now), verb() == Verb::hold ? Verb::hold : Verb::list)) {
    case Act::begins:
        break;
    case Act::leads:
        require_there();
        return {};
    case Act::objects:
        /* Report only this; the other checks would list that move's own objects. */
        return {{target_.server(), first_line(describe(in_transit(now))),
                 next_commands(in_transit(now))}};
    default:
        /* The schemas of a move that has begun are on the target, and would be obstacles. */
        add_reverse(capacity);
        return {};
    }
    capacity.add_move(session_.servers, std::max(options_.copy_jobs, options_.index_jobs));
    if (options_.is_reversible)
        capacity.add_reverse(session_.servers, false);
    const Shards& shards = session_.known.open;
    for (const Shard& shard : move_.shards)
        find_shard(shards, shard.schema, source_.server()); /* an error if it is not there */
    require_one_schema_each(source_, shards, numbers_of(move_.shards));
    /* Return now: the other checks would block on the same lock. */
    if (Obstacles locked = find_locked(source_, move_.shards, limits_); !locked.empty())
        return locked;
    if (options_.is_dry_run)
        add_rows(capacity);
    if (!tried_)
        routers_.tell_of_disconnected(source_, target_);
    if (!tried_ && options_.is_reversible)
        routers_.tell_of_disconnected(target_, source_);
    Obstacles obstacles = ::find_obstacles(session_.servers, move_, source_dsn_, limits_, tried_);
    if (options_.is_reversible)
        obstacles.add(find_obstacles_of_reverse(session_.servers, move_, target_dsn_, limits_));
    if (!options_.trusts_readers)
        for (Connection* const server : {&source_, &target_})
            obstacles.add(find_published_records(*server));
    obstacles.add(routers_.find_obstacles(source_));
    return obstacles;
}

int MoveCommand::begin(const Standing& now)
{
    Capacity capacity;
    Obstacles obstacles = find_obstacles(capacity);
    obstacles.add(capacity.find_too_few(1));
    /* move_many() has printed the obstacles of all shards. These have come since. */
    if (is_one_of_many_)
        obstacles.raise_first();
    if (options_.is_dry_run)
        capacity.tell(obstacles);
    if (options_.is_dry_run || !obstacles.empty())
        return print_obstacles(obstacles, options_.json);
    if (now.phase() == Phase::undone) {
        Context context = this->context();
        context.now.emplace(session_.servers, move_);
        steps::drop_old(context);
    }
    return go_on();
}

int MoveCommand::go_on(const Standing& now)
{
    require_same_servers(now);
    if (phase(now) == Phase::undone_reverse) {
        /* The target has all rows. So the move is the cutover of an undo. */
        warn(target_.server() + " follows " +
             (move_.is_one() ? "the shard, and has its rows" : "the shards, and has their rows") +
             ": nothing is copied");
        cutover_.remedy = command_with("--undo") + " goes on";
    }
    return options_.is_dry_run ? print_obstacles({}, options_.json) : go_on();
}

Verb MoveCommand::verb() const
{
    return options_.verb == Verb::move && is_one_of_many_ ? Verb::list : options_.verb;
}

/* If there is no record, the server that has the shards decides. */
Phase MoveCommand::phase(const Standing& now)
{
    const bool is_undo = verb() == Verb::undo; /* its servers are exchanged */
    const Phase phase = is_undo ? phase_of(now.target(), now.source()) : now.phase();
    if (phase != Phase::none)
        return phase;
    const bool has_left =
        find_missing(session_.known.open, move_.shards).size() == move_.shards.size();
    return has_left == is_undo ? Phase::none : Phase::dropped;
}

int MoveCommand::execute()
{
    /* This comes first, because all verbs read the records: after a kill between the two commits of
     * make_reverse() the target's record is one step earlier. An undo has the servers exchanged. */
    if (verb() == Verb::undo)
        finish_reverse(source_, target_, move_);
    else
        finish_reverse(target_, source_, move_);
    /* An untrusted schema is an obstacle to a move that begins, and an error for all other verbs.
     */
    if (verb() != Verb::move && verb() != Verb::list)
        for (Connection* connection : {&source_, &target_})
            require_trusted_schema(*connection, move_.name);
    const Standing now = standing();
    const Act act = act_of(phase(now), verb());
    switch (act) {
    case Act::begins:
    case Act::objects:
        return begin(now);
    case Act::goes_on:
        return go_on(now);
    case Act::leads:
        return lead_there(now);
    case Act::aborts:
    case Act::discards:
        return abort(now, act);
    case Act::drops:
        return complete(now, act);
    case Act::nothing:
        require_there();
        return end("dropped");
    case Act::refuses:
        break;
    }
    /* A list can have been interrupted before it came to this set. */
    if (is_one_of_many_ && verb() == Verb::undo && phase(now) == Phase::none)
        return lead_there(now);
    refuse(now, program::refusal_of(phase(now), verb()));
}

MoveOptions in_direction(MoveOptions options)
{
    if (options.verb == Verb::undo) {
        std::swap(options.from, options.to);
        std::swap(options.source, options.target);
    }
    return options;
}

int move_shard(const MoveOptions& options)
{
    require_arguments(options);
    time_messages();
    if (options.schema.empty())
        return move_many(options);
    MoveCommand command(in_direction(options), {options.schema});
    return execute(command);
}
