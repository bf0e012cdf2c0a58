/* snowflake-shard move: shards go to another server while they are written to.
 *
 * The state of a move is in the two databases: each has a schema snowflake_move_N with a row of
 * state. Every step reads both servers and skips its completed parts, so that a move that was
 * killed is resumed by running all steps again. The source says that a move exists; the target says
 * whether the shard is open there. */

#include "base/output.h"
#include "base/quoting.h"
#include "fleet/catalog.h"
#include "move/command.h"
#include "move/obstacles.h"
#include "move/replication.h"
#include "move/reverse.h"
#include "postgres/dsn.h"
#include "postgres/identity.h"
#include "postgres/trust.h"

namespace
{

/* The command leads clients, also if the move was begun by another one. At the step moved the
 * command of another router has been run, because lead_to() comes before that step; --abort never
 * runs it. Reverse replication is taken without --undo, too. */
bool goes_on(const MoveOptions& options, const MoveState& source, bool is_one_of_many)
{
    return source.step != Step::moved && !options.is_aborted && !options.is_completed &&
           !options.is_dry_run &&
           (options.is_resumed || options.is_undone || is_one_of_many ||
            source.is_standing_reverse());
}

/* For a move to be resumed or aborted, the routers that the source keeps are added. */
Routing routing_of(const MoveOptions& options, Connection& source, const Move& move,
                   bool is_one_of_many)
{
    Aliases aliases;
    for (const Shard& shard : move.shards)
        aliases.insert(schema_name(options.alias, shard.number));
    Routing routing = given_routing(options, aliases);
    if (const auto state = read_state(source, move); state && state->is_of_source())
        add_kept_routing(source, move.name, goes_on(options, *state, is_one_of_many), routing);
    return routing;
}

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
      cutover_(routing_of(options, source_, move_, is_one_of_many),
               move_.is_one() ? "the shard is" : "the shards are", options,
               command_with(options.is_undone ? "--undo" : "--resume") + " goes on"),
      on_target_{dsn_of(source_, options.source), options.trusts_owners},
      on_source_{dsn_of(target_, options.target), options.trusts_owners}
{
}

/* --abort, --undo and --complete work with what the records have. Those that are not stored are
 * given again: addresses, consent to run code, and the command of another router. Passwords are not
 * shown. Of an undo the options are exchanged, and --undo takes the servers of its move. */
std::string MoveCommand::command_with(const std::string& option) const
{
    const bool is_exchanged = option == "--undo";
    std::string more;
    const auto add = [&](const char* name, const std::string& dsn) {
        if (!dsn.empty())
            more += name + shell_quoted(without_secrets(dsn)) + " ";
    };
    if (option == "--undo" || option == "--resume") {
        add("--source ", is_exchanged ? options_.target : options_.source);
        add("--target ", is_exchanged ? options_.source : options_.target);
        more += options_.trusts_owners ? "--trust-owners " : "";
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

InTransit MoveCommand::in_transit(const Standing& now)
{
    const bool by_source = now.is_told_by_source();
    const MoveState& state = by_source ? *now.source : *now.target;
    const std::string of_source = without_secrets(options_.from);
    const std::string of_target = without_secrets(options_.to);
    /* After a move that came back, the shard can have moved on. --complete takes any server that
     * has it. */
    const bool is_of_these =
        now.has_come_back() || is_address_of(state.other, by_source ? target_ : source_);
    return ::in_transit(state, by_source ? of_source : of_target,
                        !is_of_these ? state.other.uri()
                        : by_source  ? of_target
                                     : of_source);
}

std::string MoveCommand::hint(const Standing& now)
{
    return !now.source && !now.target ? "" : "\nHINT:  " + next_commands(in_transit(now));
}

/* A command that was killed early has left nothing. */
std::string MoveCommand::how_to_begin()
{
    return "\nHINT:  Nothing has begun, or all has been ended: " +
           move_command(move_.shards, without_secrets(options_.from), without_secrets(options_.to),
                        "") +
           ", with the options of the move, begins one.";
}

/* Only a move leads it back: from the target, or, as an undo takes the servers, from the source. */
std::string MoveCommand::how_to_move_back(const Standing& now)
{
    const bool has_copy = now.source || now.target;
    return (has_copy ? hint(now) + " Then " : "\nHINT:  ") +
           move_command(move_.shards,
                        without_secrets(options_.is_undone ? options_.from : options_.to),
                        without_secrets(options_.is_undone ? options_.to : options_.from), "") +
           (move_.is_one() ? " moves the shard back." : " moves the shards back.");
}

/* The shard has moved before. That is not so if a move has begun, if the target keeps the old rows
 * of an earlier move, or if the source has the shard and no record. The target is asked last,
 * because the shard can have left it again. */
bool MoveCommand::is_there_already(const Standing& now)
{
    if (now.has_begun() || (now.target && !now.has_reverse()))
        return false;
    if (!now.source && find_missing(source_, move_.shards).size() < move_.shards.size())
        return false;
    if (const Shards missing = find_missing(target_, move_.shards); !missing.empty())
        throw Failure(missing[0].title() + ", has left " + source_.server() + " for " +
                      target_.server() + ", and is not there any more");
    return true;
}

/* A loop over moves can be started again. Routers that are given are led there again, because the
 * command that moved the shard may not have known them. */
int MoveCommand::lead_there()
{
    warn(move_.title() + (move_.is_one() ? ", is at " : " are at ") + target_.server() +
         " already");
    if (!options_.pgbouncer.empty() || !options_.switch_command.empty())
        routers_.lead_to(source_, target_, variables());
    return end(standing().has_reverse() ? done() + kWithReverse : done());
}

void MoveCommand::add_reverse(Capacity& capacity)
{
    const Standing now = standing();
    if (now.has_begun() && now.source && now.source->is_of_source() &&
        (now.source->is_reversible || options_.is_reversible))
        capacity.add_reverse(session_.servers, has_slot(target_, move_.back_slot));
}

Obstacles MoveCommand::find_obstacles(Capacity& capacity)
{
    const Standing now = standing();
    /* The schemas of a move that has begun are on the target, and would be obstacles. */
    if (now.has_begun()) {
        add_reverse(capacity);
        return {};
    }
    if (is_there_already(now))
        return {};
    /* Alone: the names of that move would be obstacles, too. */
    if (now.target && !now.is_undone())
        return {{target_.server(), first_line(describe(in_transit(now))),
                 next_commands(in_transit(now))}};
    capacity.add_move(session_.servers);
    if (options_.is_reversible)
        capacity.add_reverse(session_.servers, false);
    const std::vector<Shard> shards = read_shards(source_);
    for (const Shard& shard : move_.shards)
        find_shard(shards, shard.schema, source_.server()); /* an error if it is not there */
    require_one_schema_each(source_, shards, numbers_of(move_.shards));
    /* Alone: to look further would wait, too. */
    if (Obstacles locked = find_locked(source_, move_.shards, limits_); !locked.empty())
        return locked;
    if (options_.is_dry_run)
        capacity.add_rows(session_.servers, move_.shards);
    routers_.tell_of_disconnected(source_, target_);
    if (options_.is_reversible)
        routers_.tell_of_disconnected(target_, source_);
    Obstacles obstacles = ::find_obstacles(session_.servers, move_, on_target_, limits_);
    if (options_.is_reversible)
        obstacles.add(find_obstacles_of_reverse(session_.servers, move_, on_source_, limits_));
    obstacles.add(routers_.find_obstacles(source_));
    return obstacles;
}

int MoveCommand::begin()
{
    const Standing now = standing();
    if (now.leads_back() && is_address_of(now.source->other, target_)) {
        /* The target has all rows. So the move is the cutover of an undo. */
        warn(target_.server() + " follows " +
             (move_.is_one() ? "the shard, and has its rows" : "the shards, and has their rows") +
             ": nothing is copied");
        cutover_.remedy = command_with("--undo") + " goes on";
        return options_.is_dry_run ? print_obstacles({}, options_.json) : go_on();
    }
    if (now.has_begun())
        throw Failure(describe(in_transit(now)));
    if (is_there_already(now))
        return lead_there();
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
    if (now.is_undone())
        drop_closed(target_);
    return go_on();
}

int MoveCommand::resume()
{
    const Standing now = standing();
    if (is_there_already(now))
        return lead_there();
    if (!now.has_begun())
        throw Failure("there is no move of " + move_.title() + ", to be resumed" +
                      (now.source || now.target ? hint(now) : how_to_begin()));
    now.require_same_servers(session_.servers, move_);
    /* Reverse replication that stands has the records of a prepared move. It is at its end, so
     * there is nothing to resume; only --undo begins its cutover. */
    if (now.is_undo() && now.source->step == Step::prepared)
        throw Failure(describe(in_transit(now)));
    return go_on();
}

/* --from and --to are exchanged here: this is the move in the other direction. */
int MoveCommand::undo()
{
    const Standing now = standing();
    /* Reverse replication that stands, or an undo that was interrupted: the same steps lead to its
     * end. */
    if (now.is_undo() && !now.has_moved()) {
        now.require_same_servers(session_.servers, move_);
        return go_on();
    }
    if (is_there_already(now))
        return lead_there();
    const std::string why = now.has_begun()
                                ? "the move is not at its end" + hint(now)
                                : "the move was made without --reversible" + how_to_move_back(now);
    throw Failure("there is no reverse replication from " + source_.server() + ": " + why);
}

int MoveCommand::execute()
{
    /* First, because all verbs read the records: after a kill between the two commits of
     * make_reverse() that of the target is one step behind. */
    finish_reverse(target_, source_, move_);
    /* For a move that begins it is an obstacle. */
    if (options_.is_resumed || options_.is_undone || !begins())
        for (Connection* connection : {&source_, &target_})
            require_trusted_schema(*connection, move_.name);
    if (options_.is_undone)
        return undo();
    if (options_.is_resumed ||
        (is_one_of_many_ && begins() && standing().has_begun() && !standing().leads_back()))
        return resume();
    if (options_.is_aborted)
        return abort();
    return options_.is_completed ? complete() : begin();
}

MoveOptions in_direction(MoveOptions options)
{
    if (options.is_undone) {
        std::swap(options.from, options.to);
        std::swap(options.source, options.target);
    }
    return options;
}

int move_shard(const MoveOptions& options)
{
    require_arguments(options);
    if (options.schema.empty())
        return move_many(options);
    MoveCommand command(in_direction(options), {options.schema});
    return execute(command);
}
