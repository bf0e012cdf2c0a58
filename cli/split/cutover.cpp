/* The cutover: the shards that leave are closed on the old server, and opened on its standby. */

#include <exception>

#include "base/interrupt.h"
#include "base/output.h"
#include "cutover/sequences.h"
#include "cutover/waiting.h"
#include "postgres/settings.h"
#include "split/changes.h"
#include "split/command.h"
#include "split/fence.h"
#include "split/standby.h"

namespace
{

/* Says how long each step of the cutover took, if it succeeded. */
class TimedStep
{
public:
    explicit TimedStep(std::string what) : what_(std::move(what)) {}
    TimedStep(const TimedStep&) = delete;
    TimedStep& operator=(const TimedStep&) = delete;
    ~TimedStep()
    {
        if (std::uncaught_exceptions() == exceptions_)
            warn(what_ + ", " + std::to_string(milliseconds_since(start_)) + " ms");
    }

private:
    const std::string what_;
    const Clock::time_point start_ = Clock::now();
    const int exceptions_ = std::uncaught_exceptions(); /* one more: the step has failed */
};

/* Ctrl-C gives up the statement that is under way, until the promotion. */
std::function<void()> late_or_interrupted(const Connection& connection, Clock::time_point deadline)
{
    return [late = late_at(connection, deadline)] {
        stop_if_interrupted();
        late();
    };
}

} // namespace

void SplitCommand::connect_again()
{
    if (promoted_)
        return;
    promoted_.emplace(options_.standby);
    withstand_settings(*promoted_);
}

/* Clients behind PgBouncer are held first. PAUSE lets their transactions end, so that none of them
 * meets the fence. The sequences come after the writers: a transaction that writes may still draw.
 *
 * The Watches end with this function. After the note, Ctrl-C gives up no statement, and the
 * opening has a deadline of its own. */
void SplitCommand::close(Connection& keeper, Clock::time_point deadline)
{
    Connection& standby = servers_.reached();
    const Watch on_old(old_, late_or_interrupted(old_, deadline));
    const Watch on_keeper(keeper, late_or_interrupted(keeper, deadline));
    const Watch on_standby(standby, late_or_interrupted(standby, deadline));
    require_triggers(old_, split_fence());
    {
        const TimedStep step("old: clients are held");
        routers_.pause(deadline);
    }
    std::string seal;
    /* The time begins after the pause, which may wait for transactions that can still write. */
    closed_at_ = Clock::now();
    {
        const TimedStep step("old: the shards that leave are closed, and writers have ended");
        close_shards(old_, deadline);
    }
    {
        const TimedStep step("old: their sequences are closed");
        close_sequences(old_, split_fence(), keeper, deadline);
        seal = seal_shards(old_, deadline);
    }
    const TimedStep step("standby: the last write is there");
    await_seal(standby, seal, deadline);
    /* Ctrl-C goes back until the note is committed. */
    stop_if_interrupted();
    note_request(deadline);
    /* This comes after the COMMIT. If that fails, or its result is unknown, no request was sent:
     * open_again() is allowed, and takes the note away if it was committed. */
    cutover_.is_final = true;
}

/* This command sends the request by the same connection, which does not survive a restart of the
 * standby. So the request reaches the postmaster of this start, or nobody. */
void SplitCommand::note_request(Clock::time_point deadline)
{
    const std::string start = start_of(servers_.reached());
    lock_and_run(old_, deadline, [&] {
        old_.query("UPDATE snowflake_split.state SET step = 'promoting', standby_start = $1",
                   {start});
    });
}

/* THE POINT OF NO RETURN is the promotion, and it may come from the moment on when it is requested.
 * The request is sent only after three commits on the old server: the closing; the seal, which the
 * standby has replayed by then; and the note that the promotion is requested now.
 *
 * No acknowledged write is lost: the shards that leave were closed for every statement that begins
 * after the first commit, the transactions of earlier ones had ended before the second, and a
 * standby replays the WAL in its order. No ID comes twice: no sequence of these shards could be
 * drawn after the second commit, and their positions are in the WAL before it.
 *
 * Both are never open. The fence on the old server is lowered only by a command that knows that no
 * promotion of ours will come:
 * - before the note is committed, no request was sent. Each command has the lock of the old server,
 *   so no other one can write the note, or send the request that follows. It does not matter
 *   whether the standby can be reached. One that was promoted by somebody else has its shards
 *   closed, by the same commits or for lack of the slot, and stays so, because it lacks the seal or
 *   the old server gets another one.
 * - after the note, only if the standby is seen in recovery and was started again since, as
 *   --abort looks. A request is a file, which a postmaster removes when it starts, and a signal to
 *   processes that are gone; and the backend that was to send it is gone as well. A standby
 *   that is in recovery and was not started again may just be ending its recovery.
 * The standby opens in one transaction that looks whether it has the seal. Before, it is closed for
 * the shards that leave by the first commit, and for those that stay because it lacks the slot.
 *
 * A kill at this point:
 * - of the standby: it comes back in recovery or promoted, with the seal. --resume requests the
 *   promotion if it has to, and opens it.
 * - of the old server: the commits are on its disk. --resume when it runs again.
 * - of the command: --resume.
 * If the standby cannot be reached, nobody knows whether it was promoted. The shards stay closed
 * until it can be asked. */
void SplitCommand::open_standby()
{
    Connection& standby = servers_.reached();
    /* The note of a command that was killed is of an earlier start, if the standby was started
     * again since. --abort would take this request for one that is gone. */
    if (!cutover_.is_final && is_in_recovery(standby))
        note_request(deadline_of_opening());
    {
        const TimedStep step("standby: promoted");
        promote(standby, deadline_of_opening());
    }
    const auto there = read_split(standby);
    const auto here = state();
    if (!there || there->id != here->id || (there->seal != here->seal && !there->is_new))
        throw Failure(standby.server() + " was promoted without the last writes of the shards, and "
                                         "stays closed. It is another server, or was restored from "
                                         "a backup.");
    /* A command that was killed after open_sides() has opened them already, and clients may have
     * written. */
    if (!there->is_new) {
        connect_again();
        const Watch watch(*promoted_, late_at(*promoted_, deadline_of_opening()));
        see_promoted(*promoted_);
        make_slots(old_, standby);
    }
    const TimedStep step("new: the shards are open");
    if (!there->is_new)
        open_shards(standby, deadline_of_opening());
    /* Last: the sequences of the shards that stay could be drawn there until open_shards() has
     * ended them. */
    try {
        make_writable(standby);
    } catch (const Late& late) {
        /* This is no error: the shards are open here, so clients are led here first. They can read,
         * and a write fails at once; behind PgBouncer both would wait. */
        read_only_ = late.what();
    }
    opened_at_ = Clock::now();
}

std::string SplitCommand::unknown_outcome() const
{
    return "It is not known whether " + servers_.reached().server() +
           " was promoted. Until then nobody can write to the shards that leave.\nHINT:  --resume "
           "finishes the split. To go back, start the standby again, so that no promotion can come "
           "any more; if it is in recovery then, --abort opens the shards on the old server.";
}

void SplitCommand::cut_over()
{
    /* Connected now, so that clients are not held for them. */
    Connection keeper = old_.another();
    connect_again();
    lock_keeper(keeper, split_fence());
    CutoverSteps steps;
    steps.close = [&] { close(keeper, limits_.deadline()); };
    /* The fence first: clients that PgBouncer lets go would meet it, and get errors. */
    steps.open_again = [&] {
        lower_fence(old_, deadline_of_opening());
        routers_.resume();
    };
    /* The causes of a failure that a wait removes: a new table without a trigger, and a standby
     * that lags. Tables may be changed meanwhile. */
    steps.catch_up = [&] {
        make_triggers();
        await_lag_of_standby(old_, servers_.reached(), limits_.max_lag);
        look_again();
    };
    steps.opened = "The shards are open on the old server again.";
    steps.hint = "\nHINT:  --resume continues the split, --abort undoes it.";
    steps.unknown = unknown_outcome();
    cutover_.attempt(steps);
}
