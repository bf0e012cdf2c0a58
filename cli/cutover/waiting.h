/* Waits: their causes, as the servers' views name them, and work that ends by a deadline, also when
 * others hold its locks or the server hangs. */

#pragma once

#include <functional>
#include <string>

#include "base/clock.h"
#include "postgres/connection.h"

/* Prints the cause of a wait: after some seconds, because most waits are short, and then once for
 * each change. */
class Wait
{
public:
    explicit Wait(std::function<std::string()> describe) : describe_(std::move(describe)) {}

    /* Call it several times a second. */
    void tell();

private:
    const std::function<std::string()> describe_;
    Clock::time_point asked_ = Clock::now();
    std::string told_;
};

/* The pause between two rounds of a wait in which nobody is blocked: a few milliseconds at first,
 * because most waits are short. */
class Pause
{
public:
    void operator()();

private:
    std::chrono::milliseconds length_ = std::chrono::milliseconds(4);
};

/* The transactions that a process waits for; empty if there are none. */
std::string describe_blockers(Connection& connection, int process);

/* lock_and_run() whose Late names the transactions that were in the way. */
void lock_and_run_naming(Connection& connection, Clock::time_point deadline,
                         const std::function<void()>& work);

/* Returns when those that write to the tables now, or make new ones in the schemas, have ended;
 * Late if some have not by the deadline. tables, schemas: queries of their OIDs. */
void await_writers(Connection& connection, const std::string& tables, const std::string& schemas,
                   Clock::time_point deadline);

/* A statement that has not ended by the deadline is Late, for a Watch. */
std::function<void()> late_at(const Connection& connection, Clock::time_point deadline);

/* Runs work() in a new transaction, and tries again until the deadline, when it is Late. Each try
 * waits for locks for a short time only, because all other sessions queue behind it. work() must do
 * no harm if it is repeated. An error that is not of a lock is thrown at once. */
void lock_and_run(Connection& connection, Clock::time_point deadline,
                  const std::function<void()>& work);
/* The same, and the transaction is left open. */
void lock_and_begin(Connection& connection, Clock::time_point deadline,
                    const std::function<void()>& work);
