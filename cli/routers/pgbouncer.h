/* PgBouncer's admin console, for some aliases. Every command has a deadline. */

#pragma once

#include <functional>
#include <map>
#include <memory>
#include <string>

#include "base/clock.h"
#include "postgres/connection.h"
#include "postgres/obstacles.h"
#include "routers/pooler_file.h"
#include "routers/routing.h"

/* One PgBouncer, connected when the first command needs it, and again if it was restarted. All but
 * name(), pooler() and paused() throw a Failure if it does not answer. */
class PgBouncer
{
public:
    explicit PgBouncer(Pooler pooler);

    const Pooler& pooler() const { return pooler_; }
    /* PgBouncer host:port */
    std::string name() const;

    /* An error if there is no console, or if it does not let us pause. */
    void require_admin();
    /* "1.26.1"; empty before 1.12. */
    std::string version();
    /* The setting in SHOW CONFIG; empty if it is not there. */
    std::string setting(const std::string& key);
    /* The aliases whose clients have a connection to the server until they disconnect: all clients
     * of an alias, with the key "", or those of a user who has connected. */
    std::map<std::string, Aliases> with_session_pooling();
    /* Where PgBouncer leads the aliases; nothing for one that it does not know. */
    std::map<std::string, Address> places();
    /* How many connections the aliases have to their servers now. */
    int connections();

    /* Late if it does not answer. */
    void require_answer(Clock::time_point deadline);
    /* Holds the clients back when their transactions have ended. Late if some have not by then. */
    void pause(Clock::time_point deadline);
    /* No error if they are not held back. */
    void resume();
    /* Ends the connections of all clients, and holds new ones back. */
    void disconnect_clients();
    /* Reads its files again, and must lead the aliases to this place then. */
    void reload(const Address& place);

    /* The aliases that are paused; or that may be, if the console cannot be asked. */
    struct Paused {
        Aliases aliases;
        bool is_sure;
    };
    Paused paused();

private:
    Result run(const std::string& command);
    Result run(const std::string& command, Clock::time_point deadline);
    void connect();
    bool is_ready();
    Aliases find_paused();
    void for_each_alias(const std::function<void(const Result& rows, int row)>& work);

    Pooler pooler_;
    std::unique_ptr<PGconn, void (*)(PGconn*)> handle_;
    bool is_held_ = false; /* as far as we know: from pause(), reload() until resume() */
};

/* Obstacles to redirecting it, found without a change: during the cutover it is too late. source:
 * its role and password are used to ask the server to which an alias leads. */
Obstacles find_obstacles(PgBouncer& bouncer, Connection& source);
