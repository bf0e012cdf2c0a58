#include "cutover/cutover.h"

#include <thread>

#include "base/interrupt.h"
#include "base/output.h"
#include "postgres/connection.h"

namespace
{

constexpr int kTries = 3;

/* Opens the shards again after an error. Clients are told of it, and also if they cannot write
 * then. */
void open_shards_again(const std::string& error, const CutoverSteps& steps)
{
    try {
        steps.open_again();
    } catch (const Failure& other) {
        throw Failure(error + "\n" + other.what());
    }
}

[[noreturn]] void fail(const std::string& error, const CutoverSteps& steps, bool is_final)
{
    if (is_final)
        throw Failure(error + "\n" + steps.unknown);
    open_shards_again(error, steps);
    throw Failure(error + "\n" + steps.opened + steps.hint);
}

} // namespace

/* Only Late is worth another try: a transaction, a lock or the other server took too long. */
void Cutover::attempt(const CutoverSteps& steps) const
{
    for (int left = kTries;; left--) {
        try {
            return steps.close();
        } catch (const MustStartAnew& error) {
            open_shards_again(error.what(), steps);
            throw;
        } catch (const Late& late) {
            if (is_final)
                fail(late.what(), steps, is_final);
            warn(late.what());
        } catch (const std::exception& error) {
            fail(error.what(), steps, is_final);
        }
        steps.open_again();
        warn(steps.opened);
        if (left == 1)
            throw Failure("the cutover did not succeed within --timeout, " +
                          count_of(kTries, "time") + " tried" + steps.hint);
        /* Clients write meanwhile, and so the other side has to catch up again. */
        std::this_thread::sleep_for(std::chrono::seconds(1));
        stop_if_interrupted();
        steps.catch_up();
    }
}

void Cutover::let_go()
{
    is_resumed = routers.resume();
    routers.discard_prepared();
}

void Cutover::end_abort(const std::string& what)
{
    remedy = "RESUME in its console lets them go on";
    if (!is_resumed)
        throw Failure(what + " is aborted, but not every PgBouncer could be resumed");
}
