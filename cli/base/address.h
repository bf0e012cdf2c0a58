/* The address of a database, in each form that is needed of it. identity.h says whether two of them
 * are one server. */

#pragma once

#include <string>

struct Address {
    std::string host; /* or the folder of a socket */
    std::string port;
    std::string database;

    /* host:port/database, for records, JSON and messages */
    std::string text() const { return host + ":" + port + "/" + database; }
    /* The same for a connection string of libpq, and as one that is a URI. Without user and
     * password. */
    std::string dsn() const;
    std::string uri() const;

    bool operator==(const Address& other) const { return text() == other.text(); }
};

/* Reads an Address::text() from a record. */
Address address_of(const std::string& text);
