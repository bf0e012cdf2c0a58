#include "connection.h"

namespace
{

std::string trimmed(std::string message)
{
    while (!message.empty() && (message.back() == '\n' || message.back() == ' '))
        message.pop_back();
    return message;
}

/* A connection string that cannot be read is wrong usage; a server that cannot be reached is not.
 */
void check_syntax(const std::string& dsn)
{
    char* message = nullptr;
    PQconninfoOption* options = PQconninfoParse(dsn.c_str(), &message);
    if (options == nullptr && dsn.find_first_of("=:") != std::string::npos) {
        std::string text = message == nullptr ? "out of memory" : trimmed(message);
        PQfreemem(message);
        throw UsageError("connection string \"" + dsn + "\": " + text);
    }
    PQfreemem(message);
    PQconninfoFree(options);
}

[[noreturn]] void raise(const PGresult* result, const std::string& server)
{
    const char* code = PQresultErrorField(result, PG_DIAG_SQLSTATE);
    throw ServerError(trimmed(PQresultErrorMessage(result)) + "\nSERVER:  " + server,
                      code == nullptr ? "" : code);
}

bool succeeded(const PGresult* result)
{
    const ExecStatusType status = PQresultStatus(result);
    return status == PGRES_COMMAND_OK || status == PGRES_TUPLES_OK || status == PGRES_EMPTY_QUERY;
}

} // namespace

Connection::Connection(const std::string& dsn) : handle_(nullptr, PQfinish)
{
    check_syntax(dsn);
    /* With expand_dbname a DSN may be a database's name alone, as for psql. */
    const char* keys[] = {"dbname", "fallback_application_name", "client_encoding", nullptr};
    const char* values[] = {dsn.c_str(), "snowflake-shard", "UTF8", nullptr};
    handle_.reset(PQconnectdbParams(keys, values, 1));
    if (PQstatus(handle_.get()) != CONNECTION_OK)
        throw Failure(trimmed(PQerrorMessage(handle_.get())));
    query("SELECT pg_catalog.set_config('search_path', '', false)");
}

Result Connection::query(const std::string& sql, const std::vector<std::string>& parameters)
{
    std::vector<const char*> values;
    for (const std::string& parameter : parameters)
        values.push_back(parameter.c_str());
    PGresult* result = PQexecParams(handle_.get(), sql.c_str(), static_cast<int>(values.size()),
                                    nullptr, values.data(), nullptr, nullptr, 0);
    Result owner(result);
    if (!succeeded(result))
        raise(result, server());
    return owner;
}

void Connection::run(const std::string& sql)
{
    PGresult* result = PQexec(handle_.get(), sql.c_str());
    const Result owner(result);
    if (!succeeded(result))
        raise(result, server());
}

void Connection::rollback() noexcept
{
    if (PQtransactionStatus(handle_.get()) != PQTRANS_IDLE)
        PQclear(PQexec(handle_.get(), "ROLLBACK"));
}

std::string Connection::identifier(const std::string& name) const
{
    const std::unique_ptr<char, void (*)(void*)> quoted(
        PQescapeIdentifier(handle_.get(), name.c_str(), name.size()), PQfreemem);
    if (quoted == nullptr)
        throw Failure(trimmed(PQerrorMessage(handle_.get())));
    return quoted.get();
}

std::string Connection::literal(const std::string& text) const
{
    const std::unique_ptr<char, void (*)(void*)> quoted(
        PQescapeLiteral(handle_.get(), text.c_str(), text.size()), PQfreemem);
    if (quoted == nullptr)
        throw Failure(trimmed(PQerrorMessage(handle_.get())));
    return quoted.get();
}

std::string Connection::password() const
{
    const char* password = PQpass(handle_.get());
    return password == nullptr ? "" : password;
}

std::string Connection::dsn_without_password() const
{
    std::string dsn;
    PQconninfoOption* options = PQconninfo(handle_.get());
    for (PQconninfoOption* option = options; option != nullptr && option->keyword != nullptr;
         option++) {
        const std::string key = option->keyword;
        if (option->val != nullptr && key.find("password") == std::string::npos &&
            key != "client_encoding" && key != "host" && key != "port" && key != "hostaddr")
            dsn += dsn_setting(key, option->val) + " ";
    }
    const char* address = PQhostaddr(handle_.get());
    const bool is_socket = host().empty() || host()[0] == '/';
    /* Of several hosts the one that was connected to. */
    PQconninfoFree(options);
    return dsn + dsn_setting("host", host()) + " " + dsn_setting("port", port()) +
           (is_socket || address == nullptr || *address == '\0'
                ? ""
                : " " + dsn_setting("hostaddr", address));
}

std::string dsn_setting(const std::string& key, const std::string& value)
{
    const bool is_plain = !value.empty() && value.find_first_of(" '\\\t\n") == std::string::npos;
    if (is_plain)
        return key + "=" + value;
    std::string quoted;
    for (const char c : value) {
        if (c == '\'' || c == '\\')
            quoted += '\\';
        quoted += c;
    }
    return key + "='" + quoted + "'";
}
