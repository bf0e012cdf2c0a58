/* The end of a session in which code of a shard's owner runs.
 *
 * Such code can catch a cancel in a loop, and it can set client_connection_check_interval to 0, so
 * that its backend does not find the command gone. Only pg_terminate_backend() ends it for certain:
 * its error is FATAL, which no code catches. */

#pragma once

#include <optional>

#include "base/clock.h"
#include "postgres/connection.h"

/* From now on, SIGINT, SIGTERM and SIGHUP first end the sessions of all OwnerSessions, and then the
 * process, as they do without this. Before the threads start that use them. */
void end_sessions_at_interrupt();

/* A transaction of the connection, under one of the processes of the server: behind a pooler, the
 * connection does not know it. */
class OwnerSession
{
public:
    /* process: pg_backend_pid(). timeout: the statement_timeout in seconds, or 0. */
    OwnerSession(Connection& connection, int process, double timeout);
    OwnerSession(const OwnerSession&) = delete;
    OwnerSession& operator=(const OwnerSession&) = delete;
    ~OwnerSession();

    /* A statement with code of the owner begins. If it is there long after the timeout, the session
     * is ended. */
    void begin_statement();
    /* No code of the owner runs from now on. */
    void end_statement() { deadline_.reset(); }
    bool was_ended() const { return was_ended_; }

private:
    void check();

    const std::string dsn_;
    const int process_;
    const double timeout_;
    std::optional<Clock::time_point> deadline_;
    bool was_ended_ = false;
    const Watch watch_;
};
