/* The steps of a move in their order, also from the middle after a kill. */

#include "base/interrupt.h"
#include "base/output.h"
#include "cutover/dependents.h"
#include "cutover/sequences.h"
#include "cutover/standby.h"
#include "fleet/failover.h"
#include "move/capacity.h"
#include "move/command.h"
#include "move/fingerprint.h"
#include "move/obstacles.h"
#include "replication/comparison.h"
#include "replication/keys.h"
#include "move/replication.h"
#include "move/reverse.h"
#include "postgres/dsn.h"

/* Runs the steps that are left. */
int MoveCommand::go_on()
{
    note_interrupts();
    const bool is_undo = standing().is_undo();
    is_recorded_ = standing().source().has_value();
    try {
        /* Keeps the options of an interrupted move. prepare_source() keeps the options of a new
         * one. */
        if (const Standing now = standing(); now.source() && now.source()->is_of_source())
            keep_options(now);
        std::optional<Connection> snapshot; /* of the target's rows when the cutover opened it */
        if (!standing().is_cut_over()) {
            routers_.tell_of_disconnected(source_, target_);
            follow();
            if (is_to_be_held())
                return hold();
            prepare_cutover();
            cut_over_in_turn(snapshot);
        }
        return finish(snapshot);
    } catch (const MustStartAnew& error) {
        /* --resume would send the user in a circle. */
        if (!is_undo)
            throw Failure(error.what() +
                          ("\nHINT:  " + command_with("--abort") + " removes the copy."));
        const std::string from = without_secrets(options_.from);
        const std::string to = without_secrets(options_.to);
        throw Failure(error.of_undo +
                      "\nHINT:  " + move_command(move_.shards, to, from, "--complete") +
                      " stops reverse replication, and drops the rows that followed. Then " +
                      move_command(move_.shards, from, to, "") + " moves the " +
                      (move_.is_one() ? "shard" : "shards") + " back, with a copy of the rows.");
    } catch (const std::exception& error) {
        if (!is_recorded_)
            throw Failure(error.what() + how_to_begin());
        throw Failure(std::string(error.what()) + "\nHINT:  " + cutover_.remedy + "." +
                      (end_state_.empty() ? " Before the target is open, " +
                                                command_with("--abort") + " undoes the move."
                                          : ""));
    }
}

/* Stores the options, so that the next --resume need not repeat them. A slot of reverse replication
 * is made before the fence, because it waits for running transactions. */
void MoveCommand::keep_options(const Standing& now)
{
    if (options_.is_reversible && !now.source()->is_reversible) {
        if (now.source()->step != Step::prepared)
            throw Failure("--reversible comes too late: the cutover has begun without it");
        make_reversible(source_, move_);
    }
    if (verb() == Verb::hold)
        make_held(source_, move_);
    /* keep_routing() keeps passwords out of the log by SET LOCAL, so it needs a transaction. */
    source_.run("BEGIN");
    keep_routing(source_, move_.name, routers_.routing());
    source_.run("COMMIT");
}

bool MoveCommand::is_fenced()
{
    return require_state(source_, move_).step == Step::fenced;
}

bool MoveCommand::is_to_be_held()
{
    return verb() != Verb::cutover && require_state(source_, move_).is_held && !is_fenced();
}

/* Ctrl-C gives up the statement that is under way, until the cutover has begun. A fence that stands
 * says that it has begun, and so that this is done. */
void MoveCommand::follow()
{
    Servers& servers = session_.servers;
    const Watch on_source(source_, stop_or_tell(source_));
    const Watch on_target(target_, stop_or_tell(target_));
    prepare_source(servers, move_, routers_.routing(), options_.is_reversible,
                   verb() == Verb::hold);
    is_recorded_ = true;
    if (is_fenced()) {
        /* The rows can be compared only when the source is open and its changes come. */
        if (const std::string change = Following(target_, source_, move_.name).change();
            !change.empty())
            throw Failure(change +
                          ". Rows are compared before the fence alone: give --abort first");
        return;
    }
    find_obstacles_of_cutover(servers, move_).raise_first();
    require_no_dependents(source_, move_.shards);
    copy_shards(servers, move_, source_dsn_, tried_.get(), options_.copy_jobs, options_.index_jobs,
                laps_);
    find_unsubscribed(target_, move_.name, move_.shards).raise_first();
    await_lag(servers, move_, limits_.max_lag);
    laps_.add("catching up");
    /* An undo compares no rows if nothing tells that they may differ: verify --rows compares
     * reverse replication, and the undo may be urgent. */
    if (!standing().is_undo() || may_differ(servers, move_))
        compare_before_cutover(servers, move_, is_to_be_held() ? SIZE_MAX : options_.verify_size,
                               laps_);
}

int MoveCommand::hold()
{
    if (!options_.is_rehearsed)
        return end(kHeld);
    const bool is_reversible = require_state(source_, move_).is_reversible;
    rehearse(session_.servers, move_, source_dsn_, options_, laps_);
    laps_.note({"cutover", {}, {}, command_with("--cutover")});
    laps_.note({"retreat before it", {}, {}, command_with("--abort")});
    laps_.note({"retreat after it",
                {},
                {},
                is_reversible ? command_with("--undo")
                              : move_command(move_.shards, without_secrets(options_.to),
                                             without_secrets(options_.from), "")});
    end_state_ = kHeld;
    if (is_one_of_many_)
        return kDone;
    Table table = table_of_laps();
    laps_.add_to(table, move_.shards);
    print(table, options_.json ? Format::json : Format::table);
    return kDone;
}

/* Nobody can write to the shard while the fence stands, so nothing comes between it and the
 * cutover. */
void MoveCommand::prepare_cutover()
{
    if (is_fenced())
        return;
    Servers& servers = session_.servers;
    const Watch on_source(source_, stop_or_tell(source_));
    const Watch on_target(target_, stop_or_tell(target_));
    /* Again, because the copy and the comparison may have taken hours. */
    find_obstacles_of_cutover(servers, move_).raise_first();
    if (require_state(source_, move_).is_reversible) {
        Capacity capacity;
        capacity.add_reverse(servers, has_slot(target_, move_.back_slot));
        capacity.find_too_few(1).raise_first();
        find_on_publisher(target_).raise_first();
        /* This comes before await_lag(): a slot can take long, because it waits for the running
         * transactions of the target. The lag must be small when the cutover begins. */
        prepare_reverse(target_, move_);
        try_reverse(servers, move_, target_dsn_);
    }
    await_lag(servers, move_, limits_.max_lag);
}

void MoveCommand::cut_over_in_turn(std::optional<Connection>& snapshot)
{
    /* The turn is awaited only now: the moves of a list copy at the same time, and take turns only
     * where they hold clients and change a PgBouncer's file. The wait does not notice Ctrl-C, so
     * Ctrl-C is checked after it. */
    routers_.wait_for_turn();
    stop_if_interrupted();
    /* Obstacles are looked for again, because the copy may have taken hours. After the fence
     * clients would wait for the remedy. */
    routers_.make_ready(source_, target_);
    /* Connected before the fence, because writes would be blocked meanwhile. */
    snapshot.emplace(options_.to);
    pause_ = cut_over(session_.servers, move_, *snapshot, cutover_);
}

/* The fence stops no DDL. Before the opening a change is an error: require_no_change(). Returns the
 * words for the last line. */
std::string MoveCommand::tell_of_late_change()
{
    if (!has_changed(source_, move_))
        return "";
    warn(source_.server() + ": the definition of the shard has been changed since it was " +
         "closed. The change is not on " + target_.server() + ".\nHINT:  Make it there, too.");
    return ", changed after it was closed";
}

/* Returns the differences of the rows as of the opening. snapshot: of the target; none if an
 * earlier command has opened it. */
std::vector<std::string> MoveCommand::compare_as_opened(std::optional<Connection>& snapshot)
{
    std::vector<std::string> differences;
    if (snapshot) {
        warn("both: comparing rows");
        differences = compare_rows(source_, *snapshot, move_.shards, options_.verify_size);
    } else if (standing().is_undo()) {
        warn("the rows are not compared: the earlier command ended when it had opened the target");
    } else {
        warn("rows that were written after the first comparison are not compared: the earlier "
             "command ended when it had opened the target");
    }
    for (const std::string& difference : differences)
        warn(visible(difference));
    return differences;
}

/* The target is open. The rows are compared also if clients are not led there: they can be compared
 * in this command alone. */
int MoveCommand::finish(std::optional<Connection>& snapshot)
{
    const UntilEnd until_end;
    const Watch on_source(source_, tell_of_standby(source_));
    const Watch on_target(target_, tell_of_standby(target_));
    /* The state that a list prints: if one of the next steps fails, the shard is on the target all
     * the same. */
    end_state_ = "open on " + target_.server() + ", not ended";
    std::exception_ptr not_led;
    try {
        routers_.lead_to(source_, target_, variables());
    } catch (const Failure&) {
        not_led = std::current_exception();
    }
    std::string rest = tell_of_late_change();
    mark_sequences(source_, move_.fence(), true);
    const bool is_equal = compare_as_opened(snapshot).empty();
    if (not_led)
        std::rethrow_exception(not_led);
    if (const std::string positions = write_positions(session_.servers, move_); !positions.empty())
        warn(positions);
    tell_of_old_views(target_, move_.shards);
    warn("both: subscription, slot and publication");
    if (!is_equal)
        rest += ", rows differ";
    return end_source(rest, snapshot && is_equal);
}

/* The source follows the target, or is at its end. rest: words for the last line. */
int MoveCommand::end_source(const std::string& rest, bool was_compared)
{
    const bool is_reversible = standing().required_source().is_reversible;
    Context context = this->context();
    context.target_dsn = target_dsn_;
    context.was_compared = was_compared;
    run_after(context, program::Step::lead);
    if (!is_reversible)
        return end(done() + rest, rest.empty());
    if (standing().phase() == Phase::reverse)
        return end(done() + kWithReverse + rest, rest.empty());
    const std::string problem =
        context.problem.empty()
            ? "slot " + move_.back_slot + " on " + target_.server() + " has lost WAL, or is gone"
            : context.problem;
    warn("reverse replication is not possible: " + problem +
         "\nHINT:  Before a move back: " + next_commands(in_transit(standing())));
    return end(done() + ", without reverse replication" + rest, false);
}
