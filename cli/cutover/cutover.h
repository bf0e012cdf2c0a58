/* The common part of a move and a split: rows change their server while clients write, and stay
 * where they are if that fails. Each closes its shards and opens the other side in its own way. */

#pragma once

#include <cstdint>
#include <functional>
#include <string>

#include "base/clock.h"
#include "base/failure.h"
#include "routers/routers.h"

struct Limits {
    explicit Limits(const CutoverOptions& options)
        : timeout(static_cast<int>(options.timeout * 1000)),
          max_lag(static_cast<int>(options.max_lag * 1000))
    {
    }

    std::chrono::milliseconds timeout; /* how long writes may wait */
    std::chrono::milliseconds max_lag; /* largest lag of the other side before that */

    /* Counted from the call: to open again has a deadline of its own when a try was late. */
    Clock::time_point deadline() const { return Clock::now() + timeout; }
    /* The timeout for a query. */
    std::string seconds() const
    {
        return std::to_string(std::chrono::duration<double>(timeout).count());
    }
};

/* --resume would fail in the same way. So the error gets no hint to --resume. */
struct MustStartAnew : Failure {
    explicit MustStartAnew(const std::string& problem, const std::string& details = "")
        : Failure(problem + ". Start anew: --abort" + details), of_undo(problem + "." + details)
    {
    }
    std::string of_undo; /* after --abort, reverse replication would be as broken as before */
};

/* The cutover, as attempt() does it. */
struct CutoverSteps {
    /* Closes the shards, up to the point of no return or beyond it. Late: it may be tried again. */
    std::function<void()> close;
    std::function<void()> open_again;
    /* Runs before the next try, while clients write. */
    std::function<void()> catch_up;
    std::string opened; /* a message: the shards are open again */
    std::string hint;   /* the next command then; may be empty */
    /* More lines for an error after the point of no return, with a hint. */
    std::string unknown;
};

/* One command on shards that it has locked. */
struct Cutover {
    Cutover(Routing routing, const std::string& opened, const CutoverOptions& options,
            std::string first_remedy)
        : routers(std::move(routing), opened), limits(options), remedy(std::move(first_remedy))
    {
    }

    /* Tries three times at most, and each time blocks writes for about --timeout at most. An error
     * says whether clients can write again. */
    void attempt(const CutoverSteps& steps) const;

    /* Lets clients go, for --abort, when the fence is lowered. */
    void let_go();
    /* The last step of --abort, so that a PgBouncer that is gone does not keep the objects of the
     * move. */
    void end_abort(const std::string& what);

    /* The last lines of an error: the aliases that are paused. */
    std::string paused() { return routers.paused(remedy); }

    Routers routers;
    const Limits limits;
    std::string remedy; /* of a paused alias */
    /* The other side may be open by now. */
    bool is_final = false;
    /* let_go() sets it. */
    bool is_resumed = true;
};

/* The exit code of a command. An error ends with the aliases that are paused, because their clients
 * wait. */
template <typename Command>
int execute(Command& command)
{
    try {
        return command.execute();
    } catch (const Failure& error) {
        throw Failure(error.what() + command.paused());
    }
}
