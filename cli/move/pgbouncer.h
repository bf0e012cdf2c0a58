/* PgBouncer's admin console, for one alias. Every command has a deadline. */

#pragma once

#include <memory>
#include <optional>
#include <string>

#include "clock.h"
#include "postgres/connection.h"
#include "move/pooler_file.h"
#include "move/routing.h"

class PgBouncer
{
public:
    explicit PgBouncer(Pooler pooler);

    const Pooler& pooler() const { return pooler_; }
    /* PgBouncer host:port */
    std::string name() const;

    /* An error if there is no console, or if it does not let us pause. */
    void require_admin();
    /* As SHOW CONFIG has it; empty if it is not there. */
    std::string setting(const std::string& key);
    /* Where PgBouncer leads the alias; nothing if it does not know it. */
    std::optional<Place> place();

    /* Holds the clients back when their transactions have ended. Late if some have not by then. */
    void pause(Clock::time_point deadline);
    /* No error if they are not held back. */
    void resume();
    /* Reads its files again, and must lead the alias to this place then. */
    void reload(const Place& place);

    /* "is paused", or "may be paused" if the console cannot be asked; else empty. */
    std::string paused();

private:
    Result run(const std::string& command);
    Result run(const std::string& command, Clock::time_point deadline);
    void connect();
    bool is_ready();
    bool is_paused();
    std::string alias() const { return "\"" + doubled(pooler_.alias, '"') + "\""; }

    Pooler pooler_;
    std::unique_ptr<PGconn, void (*)(PGconn*)> handle_;
    bool is_held_ = false; /* as far as we know: from pause(), reload() until resume() */
};
