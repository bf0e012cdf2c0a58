/* A connection to a server, and the rows that it returns. */

#pragma once

#include <cstdint>
#include <memory>
#include <stdexcept>
#include <string>
#include <vector>

#include <libpq-fe.h>

/* UsageError ends the command with exit code 2, every other error with 3. */
struct UsageError : std::runtime_error {
    using std::runtime_error::runtime_error;
};

struct Failure : std::runtime_error {
    using std::runtime_error::runtime_error;
};

struct ServerError : Failure {
    ServerError(const std::string& message, std::string code)
        : Failure(message), sqlstate(std::move(code))
    {
    }
    std::string sqlstate;
};

class Result
{
public:
    explicit Result(PGresult* result) : result_(result, PQclear) {}

    bool is_done() const
    {
        const ExecStatusType status = PQresultStatus(result_.get());
        return status == PGRES_COMMAND_OK || status == PGRES_TUPLES_OK ||
               status == PGRES_EMPTY_QUERY;
    }
    int rows() const { return PQntuples(result_.get()); }
    int columns() const { return PQnfields(result_.get()); }
    bool is_bigint(int column) const { return PQftype(result_.get(), column) == 20; }
    bool is_null(int row, int column) const { return PQgetisnull(result_.get(), row, column); }
    std::string text(int row, int column) const { return PQgetvalue(result_.get(), row, column); }
    std::int64_t number(int row, int column) const { return std::stoll(text(row, column)); }
    bool flag(int row, int column) const { return text(row, column) == "t"; }

private:
    std::unique_ptr<PGresult, void (*)(PGresult*)> result_;
};

/* The first column of the rows. */
std::vector<std::string> texts_of(const Result& rows);

class Connection
{
public:
    /* Connects as libpq does, and sets an empty search_path: each statement qualifies its names.
     * quote_all_identifiers is off, because names are compared as they have to be quoted. */
    explicit Connection(const std::string& dsn);

    /* One statement with parameters $1, $2 ... as text. */
    Result query(const std::string& sql, const std::vector<std::string>& parameters = {});
    /* Any number of statements without parameters. */
    void run(const std::string& sql);
    /* Ends a transaction that failed; never an error. */
    void rollback();

    std::string identifier(const std::string& name) const;
    std::string literal(const std::string& text) const;

    bool is_alive() const { return PQstatus(handle_.get()) == CONNECTION_OK; }
    bool is_in_transaction() const { return PQtransactionStatus(handle_.get()) != PQTRANS_IDLE; }
    int version() const { return PQserverVersion(handle_.get()); }
    int process_id() const { return PQbackendPID(handle_.get()); }
    std::string host() const { return PQhost(handle_.get()); }
    std::string port() const { return PQport(handle_.get()); }
    std::string database() const { return PQdb(handle_.get()); }
    std::string user() const { return PQuser(handle_.get()); }
    std::string password() const { return PQpass(handle_.get()); }
    /* host:port/database */
    std::string server() const { return host() + ":" + port() + "/" + database(); }
    /* A connection string for another program, to the same server of a list. */
    std::string dsn_without_password() const;

private:
    std::unique_ptr<PGconn, void (*)(PGconn*)> handle_;
    bool quotes_all_ = false;
};

/* key='value' for a connection string. */
std::string dsn_setting(const std::string& key, const std::string& value);

/* Each quote twice, as SQL and CSV want it between quotes. */
std::string doubled(const std::string& text, char quote = '\'');
