#include "postgres/security.h"

#include <cstdlib>
#include <map>

#include <unistd.h>

#include "postgres/dsn.h"

namespace
{

/* Parameters are recognized by their beginning, so that later ones are among them. sslkeylogfile
 * gives the keys away. */
bool is_security(const std::string& key)
{
    if (key == "sslkeylogfile")
        return false;
    for (const char* const begin : {"ssl", "gss", "krb", "require", "channel_binding"})
        if (key.rfind(begin, 0) == 0)
            return true;
    return false;
}

/* The path at which libpq looks for the file. */
std::string default_file(const std::string& name)
{
    const char* const home = std::getenv("HOME");
    return home == nullptr ? "" : home + ("/.postgresql/" + name);
}

bool is_there(const std::string& file)
{
    return !file.empty() && access(file.c_str(), F_OK) == 0;
}

} // namespace

/* Compiled defaults are left out: the libpq of an older server knows fewer parameters. One that it
 * does not know is an error of CREATE SUBSCRIPTION, as a file that it does not find. */
std::string security_of(const Connection& connection)
{
    std::map<std::string, std::string> values;
    for (const Parameter& one : connection.parameters())
        if (is_security(one.key) && !one.is_default)
            values[one.key] = one.value;
    /* libpq fills in this default (since 16) while it connects, so it does not count as one. */
    if (const auto mode = values.find("sslcertmode");
        mode != values.end() && mode->second == "allow")
        values.erase(mode);
    /* Two files make libpq verify more if they are there, and are passed over if not. The server
     * must not do without them. */
    const auto root = values.find("sslrootcert");
    std::string& mode = values["sslmode"];
    if (mode == "require" &&
        is_there(root == values.end() ? default_file("root.crt") : root->second))
        mode = "verify-ca";
    const std::string crl = default_file("root.crl");
    if (mode.rfind("verify", 0) == 0 && values.count("sslcrl") + values.count("sslcrldir") == 0 &&
        is_there(crl))
        values["sslcrl"] = crl;
    std::string dsn;
    for (const auto& [key, value] : values)
        dsn += value.empty() ? "" : " " + dsn_setting(key, value);
    return dsn;
}

Obstacles find_missing_crl(Connection& subscriber, const std::string& dsn)
{
    const std::string file = setting_of(dsn, "sslcrl");
    if (file.empty() ||
        !subscriber.query("SELECT pg_read_binary_file($1, 0, 1, true)", {file}).is_null(0, 0))
        return {};
    return {{subscriber.server(), "file " + visible(file) + " of sslcrl is not there",
             how_to_connect(dsn)}};
}

std::string how_to_connect(const std::string& dsn)
{
    return "This server connects with: " + visible(without_secrets(dsn, {"options"})) +
           ". It reads files of its own machine, as the user that runs it. Let pg_hba.conf of the "
           "other server allow it. If the address or the files are others here, give them by "
           "--source, or by --target if the other server is the target of a move: 'host=db1 "
           "dbname=app sslmode=verify-full sslrootcert=FILE'.";
}
