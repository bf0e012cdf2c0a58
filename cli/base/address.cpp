#include "base/address.h"

#include "base/match.h"
#include "base/quoting.h"

std::string Address::dsn() const
{
    return dsn_setting("host", host) + " " + dsn_setting("port", port) + " " +
           dsn_setting("dbname", database);
}

std::string Address::uri() const
{
    return "postgresql://" + uri_encoded(host) + (port.empty() ? "" : ":" + port + "/") +
           uri_encoded(database);
}

/* A host is the folder of a socket, too, and an IPv6 address has colons. The name of a database may
 * have both characters, so the first port in the text ends the host. */
Address address_of(const std::string& text)
{
    const auto port = match(text, ":[0-9]+/");
    if (port.empty())
        return {text, "", ""};
    const std::size_t at = text.find(port[0]);
    return {text.substr(0, at), port[0].substr(1, port[0].size() - 2),
            text.substr(at + port[0].size())};
}
