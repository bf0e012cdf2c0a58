#include "cutover/transaction.h"

#include <algorithm>
#include <thread>

namespace
{

/* Others wait behind it for so long at most. */
constexpr auto kLongestWait = std::chrono::milliseconds(1000);

} // namespace

std::function<void()> late_at(const Connection& connection, Clock::time_point deadline)
{
    return [&connection, deadline] {
        if (Clock::now() > deadline)
            throw Late(connection.server() + " did not answer in time");
    };
}

void lock_and_run(Connection& connection, Clock::time_point deadline,
                  const std::function<void()>& work)
{
    /* A short timeout and a pause of the same length: while we wait for a lock, clients queue
     * behind us; between two tries they go on. */
    for (auto wait = std::chrono::milliseconds(50);; wait = std::min(2 * wait, kLongestWait)) {
        try {
            connection.run("BEGIN ISOLATION LEVEL READ COMMITTED; SET LOCAL lock_timeout = " +
                           std::to_string(wait.count()));
            work();
            connection.run("COMMIT");
            return;
        } catch (const std::exception& error) {
            connection.rollback();
            /* After a deadlock, too, the next try may succeed. */
            const auto* refusal = dynamic_cast<const ServerError*>(&error);
            if (refusal == nullptr ||
                (refusal->sqlstate != kLockTimeout && refusal->sqlstate != kDeadlock))
                throw;
            /* The pause would end behind the deadline, so there is no time for another try. */
            if (Clock::now() + wait > deadline)
                throw Late(error.what());
        }
        std::this_thread::sleep_for(wait);
    }
}
