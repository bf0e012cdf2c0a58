#include "connection.h"

#include <set>

namespace
{

std::string trimmed(const std::string& message)
{
    return message.substr(0, message.find_last_not_of(" \n") + 1);
}

/* A string that cannot be read is wrong usage; a server that cannot be reached is not. */
void check_syntax(const std::string& dsn)
{
    char* message = nullptr;
    PQconninfoFree(PQconninfoParse(dsn.c_str(), &message));
    const std::string text = message == nullptr ? "" : trimmed(message);
    PQfreemem(message);
    const bool is_database_name = dsn.find_first_of("=:") == std::string::npos;
    if (!text.empty() && !is_database_name)
        throw UsageError("connection string \"" + dsn + "\": " + text);
}

Result checked(PGresult* handle, const std::string& server)
{
    Result result(handle);
    if (result.is_done())
        return result;
    const char* code = PQresultErrorField(handle, PG_DIAG_SQLSTATE);
    const std::string message = trimmed(PQresultErrorMessage(handle));
    const char* copy = "COPY FROM STDIN and COPY TO STDOUT are not possible here: use psql";
    throw ServerError((message.empty() ? copy : message) + "\nSERVER:  " + server,
                      code == nullptr ? "" : code);
}

std::string taken(char* text)
{
    const std::unique_ptr<char, void (*)(void*)> owner(text, PQfreemem);
    if (text == nullptr)
        throw Failure("a name or text is not UTF-8, or memory is out");
    return text;
}

} // namespace

std::vector<std::string> texts_of(const Result& rows)
{
    std::vector<std::string> texts;
    for (int i = 0; i < rows.rows(); i++)
        texts.push_back(rows.text(i, 0));
    return texts;
}

Connection::Connection(const std::string& dsn) : handle_(nullptr, PQfinish)
{
    check_syntax(dsn);
    /* With expand_dbname a DSN may be a database's name alone, as for psql. */
    const char* keys[] = {"dbname", "fallback_application_name", "client_encoding", nullptr};
    const char* values[] = {dsn.c_str(), "snowflake-shard", "UTF8", nullptr};
    handle_.reset(PQconnectdbParams(keys, values, 1));
    if (!is_alive())
        throw Failure(trimmed(PQerrorMessage(handle_.get())));
    quotes_all_ = query("SHOW quote_all_identifiers").text(0, 0) == "on";
    run("SET search_path = ''; SET quote_all_identifiers = off");
}

Result Connection::query(const std::string& sql, const std::vector<std::string>& parameters)
{
    std::vector<const char*> values;
    for (const std::string& parameter : parameters)
        values.push_back(parameter.c_str());
    return checked(PQexecParams(handle_.get(), sql.c_str(), static_cast<int>(values.size()),
                                nullptr, values.data(), nullptr, nullptr, 0),
                   server());
}

void Connection::run(const std::string& sql)
{
    checked(PQexec(handle_.get(), sql.c_str()), server());
}

void Connection::rollback()
{
    if (is_in_transaction())
        PQclear(PQexec(handle_.get(), "ROLLBACK"));
}

std::string Connection::identifier(const std::string& name) const
{
    return taken(PQescapeIdentifier(handle_.get(), name.c_str(), name.size()));
}

std::string Connection::literal(const std::string& text) const
{
    return taken(PQescapeLiteral(handle_.get(), text.c_str(), text.size()));
}

std::string Connection::dsn_without_password() const
{
    std::string dsn = dsn_setting("host", host()) + " " + dsn_setting("port", port());
    const std::set<std::string> left_out = {"host", "hostaddr", "port", "password",
                                            "client_encoding"};
    const std::unique_ptr<PQconninfoOption, void (*)(PQconninfoOption*)> options(
        PQconninfo(handle_.get()), PQconninfoFree);
    for (PQconninfoOption* option = options.get(); option->keyword != nullptr; option++) {
        const std::string key = option->keyword;
        std::string value = option->val == nullptr ? "" : option->val;
        if (key == "options" && quotes_all_)
            value += " -c quote_all_identifiers=off";
        if (!value.empty() && left_out.count(key) == 0)
            dsn += " " + dsn_setting(key, value);
    }
    return dsn;
}

std::string dsn_setting(const std::string& key, const std::string& value)
{
    if (!value.empty() && value.find_first_of(" '\\\t\n") == std::string::npos)
        return key + "=" + value;
    std::string quoted;
    for (const char c : value)
        quoted += (c == '\'' || c == '\\' ? "\\" : "") + std::string(1, c);
    return key + "='" + quoted + "'";
}

std::string doubled(const std::string& text, char quote)
{
    std::string doubled;
    for (const char c : text)
        doubled.append(c == quote ? 2 : 1, c);
    return doubled;
}
