#include "verbs/owner_session.h"

#include "base/timeouts.h"

#include <chrono>
#include <csignal>
#include <future>
#include <map>
#include <mutex>
#include <set>
#include <thread>

namespace
{

/* By connection string. A process can be there twice only for two servers of one string. */
using Sessions = std::map<std::string, std::multiset<int>>;

std::mutex lock;
Sessions sessions;

/* Without a WARNING for a process that has just ended. */
void terminate(const std::string& dsn, const std::multiset<int>& processes)
{
    std::string list;
    for (const int process : processes)
        list += (list.empty() ? "" : ",") + std::to_string(process);
    Connection(dsn).query("SELECT pg_terminate_backend(pid) FROM pg_stat_activity "
                          "WHERE pid = ANY ($1::integer[])",
                          {"{" + list + "}"});
}

/* A server that hangs delays the end by the grace only. */
void terminate_all()
{
    static std::vector<std::future<void>> ends; /* their destructors would wait */
    {
        const std::lock_guard<std::mutex> locked(lock);
        for (const auto& [dsn, processes] : sessions)
            ends.push_back(std::async(std::launch::async, terminate, dsn, processes));
    }
    const Clock::time_point deadline = Clock::now() + timeouts::kOwnerCode;
    for (const std::future<void>& end : ends)
        end.wait_until(deadline);
}

} // namespace

/* The signals are blocked in all threads, and one waits for them: a handler could not connect. A
 * signal that is ignored, as nohup has SIGHUP, stays so. The second one ends the process at once.
 */
void end_sessions_at_interrupt()
{
    sigset_t signals;
    sigemptyset(&signals);
    for (const int signal : {SIGINT, SIGTERM, SIGHUP}) {
        struct sigaction action = {};
        sigaction(signal, nullptr, &action);
        if (action.sa_handler != SIG_IGN)
            sigaddset(&signals, signal);
    }
    pthread_sigmask(SIG_BLOCK, &signals, nullptr);
    std::thread([signals] {
        int signal = 0;
        if (sigwait(&signals, &signal) != 0)
            return;
        pthread_sigmask(SIG_UNBLOCK, &signals, nullptr);
        terminate_all();
        raise(signal);
    }).detach();
}

OwnerSession::OwnerSession(Connection& connection, int process, double timeout)
    : dsn_(connection.dsn_of_server()), process_(process), timeout_(timeout),
      watch_(connection, [this] { check(); })
{
    const std::lock_guard<std::mutex> locked(lock);
    sessions[dsn_].insert(process_);
}

OwnerSession::~OwnerSession()
{
    const std::lock_guard<std::mutex> locked(lock);
    std::multiset<int>& processes = sessions[dsn_];
    processes.erase(processes.find(process_));
    if (processes.empty())
        sessions.erase(dsn_);
}

void OwnerSession::begin_statement()
{
    if (timeout_ > 0)
        deadline_ =
            Clock::now() + timeouts::kOwnerCode +
            std::chrono::duration_cast<Clock::duration>(std::chrono::duration<double>(timeout_));
}

/* An error is not one of the statement: the server may have no connection free just now. */
void OwnerSession::check()
{
    if (!deadline_ || Clock::now() < *deadline_)
        return;
    try {
        terminate(dsn_, {process_});
        was_ended_ = true;
        deadline_.reset();
    } catch (const Failure&) {
        deadline_ = Clock::now() + timeouts::kOwnerCode;
    }
}
