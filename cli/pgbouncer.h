/* PgBouncer's admin console, for one alias, and the file that holds its [databases]. */

#pragma once

#include <memory>
#include <string>

#include "clock.h"
#include "connection.h"

class PgBouncer
{
public:
    /* Without a connection string all functions do nothing. */
    PgBouncer(std::string dsn, std::string file, std::string alias);

    /* Holds the clients back when their transactions have ended. Late if some have not by then; the
     * clients go on. */
    void pause(Clock::time_point deadline);
    /* No error if they are not held back. */
    void resume();
    /* Writes the server's host, port and dbname into the file, and makes PgBouncer read it. */
    void lead_to(const Connection& server);

private:
    void connect();
    void run(const std::string& command, Clock::time_point deadline = Clock::time_point::max());

    const std::string dsn_;
    const std::string file_;
    const std::string alias_;
    std::unique_ptr<PGconn, void (*)(PGconn*)> handle_;
    Clock::time_point paused_;
};
