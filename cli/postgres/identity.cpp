#include "postgres/identity.h"

#include "base/timeouts.h"

Identity identify(Connection& connection)
{
    /* The times are numbers of seconds: the text of a timestamptz depends on the TimeZone and the
     * DateStyle of the role, and the same server can be given with two roles. */
    const Result row =
        connection.query("SELECT format('%s/%s', system_identifier, current_database()), "
                         "extract(epoch FROM pg_postmaster_start_time()), pg_is_in_recovery() "
                         "FROM pg_control_system()");
    return {row.text(0, 0), row.text(0, 1), row.flag(0, 2)};
}

bool is_same_server(Connection& one, Connection& other)
{
    return identify(one) == identify(other);
}

bool is_address_of(const Address& address, Connection& connection)
{
    if (address == connection.address())
        return true;
    try {
        Connection there(connection.dsn_to(address) +
                         " connect_timeout=" + std::to_string(timeouts::kAddress.count()));
        return is_same_server(connection, there);
    } catch (const Failure&) {
        return false;
    }
}
