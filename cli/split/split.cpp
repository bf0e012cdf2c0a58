/* snowflake-shard split: a standby is promoted and takes a part of the shards, while clients write.
 *
 * The record of a split is the schema snowflake_split of the old server, and by the WAL that of the
 * standby. Every step reads it and completes it, so that a split that was killed is resumed by
 * doing all steps again. */

#include "base/interrupt.h"
#include "base/output.h"
#include "base/shard_states.h"
#include "base/timeouts.h"
#include "cutover/dependents.h"
#include "fleet/in_transit.h"
#include "fleet/published.h"
#include "postgres/identity.h"
#include "postgres/trust.h"
#include "split/changes.h"
#include "split/command.h"
#include "cutover/sequences.h"
#include "cutover/standby.h"
#include "split/fence.h"
#include "split/session.h"
#include "split/standby.h"

namespace
{

/* The routing has only the aliases of the shards that leave: the clients of the others are not
 * held. The new server has the tables of the options, too, by the WAL. They are not read there:
 * --from is the wrong server then, and require_same_servers() says so. */
Routing routing_of(const SplitOptions& options, Connection& old,
                   const std::vector<SplitShard>& shards)
{
    ShardSet leaving;
    for (const SplitShard& shard : shards)
        if (shard.leaves)
            leaving.insert(shard.number);
    Routing routing =
        given_routing(options, aliases_of(options.alias, leaving, leaving.size() == 1));
    if (const auto state = read_split(old); state && !state->is_new)
        add_kept_routing(old, kSplitSchema, options.is_resumed,
                         options.is_resumed && state->is_under_way(), routing);
    return routing;
}

} // namespace

SplitCommand::SplitCommand(const SplitOptions& options)
    : options_(options), servers_(options), shards_(shards_of(options, old_)),
      cutover_(routing_of(options, old_, shards_), "the shards are", options,
               "snowflake-shard split ... --resume goes on")
{
}

Shards SplitCommand::leaving() const
{
    Shards leaving;
    for (const SplitShard& shard : shards_)
        if (shard.leaves)
            leaving.push_back(shard);
    return leaving;
}

int SplitCommand::end(const std::string& state)
{
    const auto now = this->state();
    const std::string next = now ? next_command(*now) : "";
    std::vector<ShardState> states;
    for (const Shard& shard : leaving())
        states.push_back({shard, state, "", "", "", next});
    return print_states(states, options_.json);
}

void SplitCommand::require_same_servers(const SplitState& state)
{
    if (state.is_new)
        throw Failure("--from is the new server of the split, and --standby the old one\n"
                      "HINT:  Give them as they were given when it began.");
    /* A verb that needs the standby calls reached(), which is the error then. */
    if (servers_.standby == nullptr)
        return;
    /* By the address alone, a server that was made anew in the place of the standby would pass. */
    if (identify(old_).database != identify(*servers_.standby).database)
        throw Failure(servers_.standby->server() + " is no standby of " + old_.server() +
                      ": they have different system identifiers");
    /* With another standby each would open the shards that leave. */
    if (!is_address_of(state.new_server, *servers_.standby))
        throw Failure("the split is that of standby " + visible(state.new_server.text()) +
                      ", not of " + servers_.standby->server() +
                      "\nHINT:  Give the standby by the address with which the split began. For "
                      "another one, begin anew after --abort.");
}

/* The promoted standby has the state of the old server until it is opened. */
void SplitCommand::require_home(const SplitState& state)
{
    if (!state.is_home)
        throw Failure(
            old_.server() +
            " lacks the replication slot that was made when its shards were closed. It is the "
            "promoted standby, or the old server after a failover.\nHINT:  Give the old server as "
            "--from. Only if this is the old server, and has all its data: SELECT "
            "snowflake_split.close(); there, then --resume or --abort.");
}

int SplitCommand::begin()
{
    if (const auto now = state())
        throw Failure(now->is_under_way()
                          ? "a split has begun: " + text_of(now->step) +
                                "\nHINT:  " + next_commands(*now)
                          : "the server has been split\nHINT:  " + next_commands(*now));
    Connection& standby = servers_.reached();
    Obstacles obstacles = find_obstacles(old_, standby, shards_, limits_);
    if (!options_.trusts_readers)
        obstacles.add(find_published_records(old_));
    const Obstacles of_routers = routers_.find_obstacles(old_);
    obstacles.add(of_routers);
    /* connections() asks the consoles again. One that does not answer would be an error, which
     * hides the obstacles that were found. */
    if (of_routers.empty())
        obstacles.add(find_too_few_connections(standby, routers_.connections()));
    /* Other obstacles can be the cause of an error there. */
    if (obstacles.empty())
        obstacles.add(try_after_promotion(old_, standby, shards_));
    /* The warnings come in a dry run, too, where there is time to act on them. */
    tell_of_both_servers(old_, standby);
    tell_of_outside_sequences(old_, {shards_.begin(), shards_.end()});
    if (options_.is_dry_run || !obstacles.empty())
        return print_obstacles(obstacles, options_.json);
    return go_on();
}

int SplitCommand::resume()
{
    const auto now = state();
    if (!now)
        throw Failure("there is no split of " + old_.server() + " to be resumed");
    require_same_servers(*now);
    if (now->is_under_way())
        require_home(*now);
    return go_on();
}

/* The options are kept, so that the next --resume cannot forget a PgBouncer. The record and its
 * options come in one transaction: a command that is killed leaves both or nothing. */
void SplitCommand::keep_options()
{
    old_.run("BEGIN");
    if (!state())
        make_split(old_, servers_.reached().address(), shards_);
    keep_routing(old_, kSplitSchema, routers_.routing());
    old_.run("COMMIT");
}

void SplitCommand::make_triggers()
{
    try {
        ::make_triggers(old_, split_fence(), timeouts::kPatientLock);
    } catch (const Late& late) {
        /* The error is not Late: no deadline of the cutover has passed, and somebody has to end a
         * transaction. */
        throw Failure(late.what() + std::string("\nThen --resume goes on."));
    }
}

/* Tables and settings may change after the split has begun. */
void SplitCommand::look_again()
{
    try {
        find_obstacles_of_closing(old_, shards_).raise_first();
        try_after_promotion(old_, servers_.reached(), shards_).raise_first();
        find_obstacles_of_promotion(old_, servers_.reached(), shards_).raise_first();
    } catch (const Failure& error) {
        throw Failure(error.what() + std::string("\nThen --resume goes on."));
    }
}

/* Up to the cutover, Ctrl-C gives up the statement that is under way.
 *
 * All of this can last, so the shards are open meanwhile. The record comes first, because --abort
 * finds the other changes by it. The lag of the standby comes after the triggers, which write WAL
 * themselves. Nothing is in the way of a second run: a trigger that is there is not made again. */
void SplitCommand::prepare()
{
    Connection& standby = servers_.reached();
    const Watch on_old(old_, stop_or_tell(old_));
    const Watch on_standby(standby, stop_or_tell(standby));
    keep_options();
    if (require_split(old_).step != SplitStep::prepared) {
        /* The standby may need long to catch up, and nobody could write until then. */
        warn("old: the shards are opened again, because the last command was ended");
        lower_fence(old_, deadline_of_opening());
    }
    /* This check comes after lower_fence(): if the command ends here, the old server is open. */
    if (!is_in_recovery(standby))
        throw Failure(standby.server() +
                      " was promoted by somebody else\nHINT:  --abort ends the split.");
    warn("standby: default_transaction_read_only");
    make_read_only(standby);
    warn("old: triggers");
    make_triggers();
    await_lag_of_standby(old_, standby, limits_.max_lag);
    for (Connection* connection : {&old_, &standby})
        if (read_split(*connection)) /* the standby may not have replayed it yet */
            read_ahead(*connection, split_fence());
    /* These come last, before clients are held: obstacles can have come since the begin. */
    routers_.wait_for_turn();
    stop_if_interrupted();
    look_again();
    routers_.make_ready(old_, standby);
}

/* Does the steps that are left. */
int SplitCommand::go_on()
{
    note_interrupts();
    const auto now = state();
    /* After this record is written, the split can only be completed: the promotion may have come
     * already. */
    if (!now || now->step < SplitStep::promoting) {
        prepare();
        cut_over();
    }
    if (require_split(old_).is_under_way()) {
        try {
            open_standby();
        } catch (const std::exception& error) {
            throw Failure(error.what() + ("\n" + unknown_outcome()));
        }
    }
    return finish();
}

void SplitCommand::lead_there()
{
    /* The shards in one range list, as --shards takes them: "1000-1999". */
    routers_.lead_to(old_, servers_.reached(),
                     {{"SHARDS=" + format_shards(numbers_of(leaving()))}});
}

/* A slot keeps WAL for the standby that will not come back. primary_slot_name has no effect on a
 * server that was promoted, but keeps its value. */
void SplitCommand::tell_of_slot()
{
    const Result slot = servers_.reached().query("SHOW primary_slot_name");
    const std::string name = slot.text(0, 0);
    const Result there = old_.query(
        "SELECT FROM pg_replication_slots WHERE slot_name = $1 AND slot_type = 'physical'", {name});
    if (there.rows() > 0)
        warn(old_.server() +
             " keeps WAL for the standby that was promoted: SELECT "
             "pg_drop_replication_slot(" +
             old_.literal(name) + ");");
}

/* Clients wait for lead_there(), and for nothing else here. If it fails, the step stays promoting:
 * --resume finds the shards open, and leads clients there again.
 *
 * The bounds of sequences take long, and so can the definitions. They come before stay(), which
 * ends the split: if the command is killed before that, list shows that --resume goes on. The slot
 * goes after stay(), because staying() lets clients write only where the slot is until stay() has
 * replaced its body. */
int SplitCommand::finish()
{
    const UntilEnd until_end;
    lead_there();
    if (!read_only_.empty())
        throw Failure("the shards are open, and clients are led there, but " + read_only_ +
                      "\nThen --resume finishes the split.");
    /* A resumed command does not know when the one before it closed the shards. */
    if (closed_at_ != Clock::time_point() && opened_at_ != Clock::time_point())
        warn("writes were blocked for " +
             std::to_string(
                 std::chrono::duration_cast<std::chrono::milliseconds>(opened_at_ - closed_at_)
                     .count()) +
             " ms");
    std::string rest;
    if (require_split(old_).is_under_way())
        rest = tell_of_changes(old_, promoted_ ? *promoted_ : servers_.reached(), leaving());
    mark_sequences(old_, split_fence(), true);
    mark_sequences(servers_.reached(), split_fence(), false);
    if (require_split(old_).is_under_way())
        old_.query("SELECT snowflake_split.stay()");
    drop_slot(old_);
    tell_of_slot();
    tell_of_global_tables(old_, servers_.reached(), "Now: ");
    const int code = end("moved" + rest);
    return rest.empty() ? code : kFound;
}

int SplitCommand::execute()
{
    const Watch on_old(old_, tell_of_standby(old_));
    std::optional<Watch> on_standby;
    if (servers_.standby != nullptr)
        on_standby.emplace(*servers_.standby, tell_of_standby(*servers_.standby));
    /* A split that begins reports this as an obstacle. */
    if (options_.is_resumed || options_.is_aborted || options_.is_completed)
        require_trusted_schema(old_, kSplitSchema);
    if (options_.is_resumed)
        return resume();
    if (options_.is_aborted)
        return abort();
    return options_.is_completed ? complete() : begin();
}

int split_server(const SplitOptions& options)
{
    time_messages();
    SplitCommand command(options);
    return ::execute(command);
}
