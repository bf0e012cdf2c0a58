/* The database and the server that a connection has reached. */

#pragma once

#include <string>

#include "base/address.h"
#include "postgres/connection.h"

/* All servers that began as a copy of one, as a standby does, have the same system identifier. A
 * standby that was promoted is a server of its own: only its start tells it from the other. So two
 * identities are compared by both; that of a server changes when it is started again. */
struct Identity {
    std::string database; /* with the system identifier */
    std::string start;
    bool is_standby;

    bool operator==(const Identity& other) const
    {
        return database == other.database && start == other.start;
    }
    std::string text() const { return start + "/" + database; }
};

Identity identify(Connection& connection);

/* The same database, also under two addresses. Wrong if the server is restarted between the two
 * questions: it looks like another one then. */
bool is_same_server(Connection& one, Connection& other);

/* The address leads to this server. Another name of it is asked, as the role of the connection; if
 * nobody answers there, only the names are compared. */
bool is_address_of(const Address& address, Connection& connection);
