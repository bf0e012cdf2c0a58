/* A connection to a server, and the rows that it returns. */

#pragma once

#include <cstdint>
#include <functional>
#include <future>
#include <memory>
#include <stdexcept>
#include <string>
#include <vector>

#include <libpq-fe.h>

#include "base/address.h"
#include "base/failure.h"
#include "base/quoting.h"
#include "postgres/notices.h"
#include "postgres/sqlstate.h"

/* Others were in the way until the deadline. At the cutover, move and split then open the source
 * again, and try three times. */
struct Late : Failure {
    using Failure::Failure;
};

/* A statement has failed. The message is that of the server, with its address. sqlstate is empty if
 * the server did not answer, and for COPY, which is refused here. If Connection::is_alive() is
 * false, the connection is lost, and the statement may have been done. */
struct ServerError : Failure {
    ServerError(const std::string& message, std::string code)
        : Failure(message), sqlstate(std::move(code))
    {
    }
    std::string sqlstate;
};

/* Calls the function; a ServerError of it begins with the step: "the fingerprint was computed". */
template <typename Function>
auto while_doing(const std::string& what, Function function)
{
    try {
        return function();
    } catch (const ServerError& error) {
        throw ServerError("while " + what + ": " + error.what(), error.sqlstate);
    }
}

/* How often a statement is tried that the replay of a standby cancels. */
constexpr int kReplayTries = 5;

/* The rows of a statement. All values are the server's text: t and f for a boolean, "" for NULL
 * (is_null() tells it from an empty text). number() throws a std::exception if the text is no
 * number. A null pointer counts as a failed statement, as PQresultStatus() has it. */
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
    std::string error() const;
    std::string sqlstate() const;
    /* The command tag; empty without a result. */
    std::string tag() const { return is_done() ? PQcmdStatus(result_.get()) : ""; }
    int rows() const { return PQntuples(result_.get()); }
    int columns() const { return PQnfields(result_.get()); }
    unsigned int type(int column) const { return PQftype(result_.get(), column); }
    std::string name(int column) const { return PQfname(result_.get(), column); }
    bool is_null(int row, int column) const { return PQgetisnull(result_.get(), row, column); }
    std::string text(int row, int column) const { return PQgetvalue(result_.get(), row, column); }
    std::int64_t number(int row, int column) const { return std::stoll(text(row, column)); }
    bool flag(int row, int column) const { return text(row, column) == "t"; }
    /* -1 if there is no column of this name. */
    int column(const std::string& name) const { return PQfnumber(result_.get(), name.c_str()); }

private:
    std::unique_ptr<PGresult, void (*)(PGresult*)> result_;
};

/* The first column of the rows. */
std::vector<std::string> texts_of(const Result& rows);
/* A column of numbers as an array of SQL: {1,2}. */
std::string array_of(const Result& rows, int column);

/* A parameter of libpq, as the connection has it. */
struct Parameter {
    std::string key;
    std::string value;
    bool is_default; /* of the compiled libpq */
    bool is_secret;
};

/* A session. libpq permits one thread at a time, so each thread has a Connection of its own. A lost
 * connection is made again by reopen() only: a lock or a setting of the session would be lost
 * unseen. */
class Connection
{
public:
    /* Connects as libpq does, and sets an empty search_path: each statement qualifies its names.
     * quote_all_identifiers is off, because names are compared as they have to be quoted. Throws
     * UsageError for a string that cannot be read, and Failure without a server or for a
     * connection pooler. */
    explicit Connection(const std::string& dsn);
    Connection(const Connection&) = delete;
    Connection& operator=(const Connection&) = delete;
    ~Connection();

    /* Connects to the same database by the given string. If that has several hosts, it can reach
     * another one: dsn_of_server() names the one that answered. */
    Connection another() const { return Connection(dsn_); }
    /* A new session with the server that has answered. Throws Failure if there is none. */
    void reopen();

    /* One statement with parameters $1, $2 ... as text. The extended protocol permits no second
     * statement. A parameter is never NULL: statements use NULLIF($1, ''). Throws ServerError. */
    Result query(const std::string& sql, const std::vector<std::string>& parameters = {});
    /* The same, but each row is passed on when it comes, so that memory holds one at a time.
     * Returns no rows. If take() throws, the statement is given up. */
    using TakeRow = std::function<void(const Result& row)>;
    void query_each(const std::string& sql, const TakeRow& take);
    /* Any number of statements without parameters. If they have no BEGIN of their own, they are one
     * transaction (the simple protocol). The first that fails ends the rest. Returns the result of
     * the last one. Throws ServerError. */
    Result run(const std::string& sql);
    /* The replay of a standby has cancelled the statement: its rows or a lock were in the way. The
     * same one can succeed. query() and run() try it again, but not within a transaction. */
    bool was_cancelled_by_replay(const ServerError& error) const;
    /* Ends a transaction that failed; never an error. The transaction of a statement that was given
     * up ends before the next statement. */
    void rollback();
    /* Waits until a statement that was given up has ended, and its transaction. */
    void settle();
    /* The object of the statements from now on, such as "shard 5: ": their notices are printed with
     * it, at the next label or at the end. Without one, with the address of the server. */
    void label(const std::string& label) { notices_.label(label); }

    /* Statements that set the timeouts of statements and transactions. They are 0 in a new session.
     * DEFAULT, the value of the role and the database, is for SQL of the user. scope: SET or SET
     * LOCAL. */
    std::string timeouts_sql(const std::string& scope, const std::string& value) const;

    std::string identifier(const std::string& name) const;
    std::string literal(const std::string& text) const;

    bool is_alive() const { return PQstatus(handle_.get()) == CONNECTION_OK; }
    bool is_in_transaction() const { return PQtransactionStatus(handle_.get()) != PQTRANS_IDLE; }
    /* The string as it was given: it may have a password. */
    const std::string& dsn() const { return dsn_; }
    /* The version when it connected: libpq forgets it when the connection is lost. */
    int version() const { return version_; }
    /* The encoding of the database. */
    std::string encoding() const
    {
        const char* encoding = PQparameterStatus(handle_.get(), "server_encoding");
        return encoding == nullptr ? "" : encoding;
    }
    /* Names there can have any bytes; only those that are UTF-8 can be read. */
    bool is_ascii() const { return encoding() == "SQL_ASCII"; }
    int process_id() const { return PQbackendPID(handle_.get()); }
    std::string host() const { return PQhost(handle_.get()); }
    std::string port() const { return PQport(handle_.get()); }
    std::string database() const { return PQdb(handle_.get()); }
    std::string user() const { return PQuser(handle_.get()); }
    std::string password() const { return PQpass(handle_.get()); }
    /* The address of the server that answered, of a list of hosts. */
    Address address() const { return {host(), port(), database()}; }
    /* The same for messages. */
    std::string server() const { return visible(address().text()); }
    /* The parameters from the string, the environment, a service file or libpq's defaults; not the
     * empty ones. */
    std::vector<Parameter> parameters() const;
    /* A connection string for another program, to the same server of a list. ps may show it. */
    std::string dsn_without_password() const;
    /* The same with the password, and that of a key: to this server, and to another address. */
    std::string dsn_of_server() const;
    std::string dsn_to(const Address& other) const { return dsn_of_server() + " " + other.dsn(); }

private:
    friend class Watch;
    friend class CopyIn;
    friend class CopyOut;
    friend class SentQuery;

    void open(const std::string& dsn);
    Result with_tries(const std::string& sql, const std::function<bool()>& send);
    /* kept_extension.cpp */
    void prepare(const std::string& sql);
    Result in_transaction(const std::string& sql, const std::function<Result()>& statement);
    void keep_extension();
    void call_by_oid(unsigned int function, unsigned int argument);
    void take_note(const Result& result);
    void require_own_session(std::int64_t process) const;
    Result finish(bool is_sent) { return finish(Result(nullptr), is_sent); }
    Result finish(Result last, bool is_sent, const TakeRow& take = nullptr);
    PGresult* await_result();
    void begin_copy(const std::string& sql, ExecStatusType kind);
    void wait(bool is_unsent);
    void check();
    void or_give_up(const std::function<void()>& function);

    std::string dsn_;
    Notices notices_; /* before the handle, which gives them */
    std::unique_ptr<PGconn, void (*)(PGconn*)> handle_;
    std::function<void()> check_;
    std::future<void> cancel_; /* of a statement that was given up */
    int version_ = 0;
    enum class Kept { never, lost, now };
    Kept extension_ = Kept::never;
    std::string dump_options_; /* of a session of pg_dump; often empty */
};

/* While it lives, check() is called several times a second while a statement of the connection is
 * under way. If it throws, the statement is given up: the server is asked to cancel it, and the
 * next one waits until it has ended. An inner Watch replaces the outer one until it ends. */
class Watch
{
public:
    Watch(Connection& connection, std::function<void()> check);
    Watch(const Watch&) = delete;
    Watch& operator=(const Watch&) = delete;
    ~Watch();

private:
    Connection& connection_;
    std::function<void()> before_;
};
