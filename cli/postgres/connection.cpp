#include "postgres/connection.h"

#include <algorithm>
#include <array>
#include <set>
#include <thread>
#include <utility>

#include <poll.h>

#include "base/timeouts.h"
#include "postgres/dsn.h"
#include "postgres/error_text.h"

namespace
{

using Options = std::unique_ptr<PQconninfoOption, void (*)(PQconninfoOption*)>;

/* libpq waits for the server without a limit, so a thread does it. If no answer comes, the thread
 * is not awaited. */
std::future<void> cancel(PGconn* handle)
{
    const std::shared_ptr<PGcancel> request(PQgetCancel(handle), PQfreeCancel);
    std::packaged_task<void()> task([request] {
        std::array<char, 256> message = {};
        PQcancel(request.get(), message.data(), message.size());
    });
    std::future<void> end = task.get_future();
    std::thread(std::move(task)).detach();
    return end;
}

/* A COPY is no error of libpq, which waits for its data. */
void end_copy(PGconn* handle, ExecStatusType status)
{
    if (status == PGRES_COPY_IN)
        PQputCopyEnd(handle, "snowflake-shard has no data");
    for (char* row = nullptr; status == PGRES_COPY_OUT && PQgetCopyData(handle, &row, 0) > 0;)
        PQfreemem(row);
}

std::string taken(char* text)
{
    const std::unique_ptr<char, void (*)(void*)> owner(text, PQfreemem);
    if (text == nullptr)
        throw Failure("a name or text is not UTF-8, or memory is out");
    return text;
}

} // namespace

std::string Result::error() const
{
    return text_of(result_.get());
}

std::string Result::sqlstate() const
{
    const char* code = PQresultErrorField(result_.get(), PG_DIAG_SQLSTATE);
    return code == nullptr ? "" : code;
}

std::vector<std::string> texts_of(const Result& rows)
{
    std::vector<std::string> texts;
    for (int i = 0; i < rows.rows(); i++)
        texts.push_back(rows.text(i, 0));
    return texts;
}

std::string array_of(const Result& rows, int column)
{
    std::string list;
    for (int i = 0; i < rows.rows(); i++)
        list += (i == 0 ? "" : ",") + rows.text(i, column);
    return "{" + list + "}";
}

Connection::Connection(const std::string& dsn) : dsn_(dsn), handle_(nullptr, PQfinish)
{
    check_dsn(dsn);
    open(dsn);
}

void Connection::reopen()
{
    open(dsn_of_server());
}

void Connection::open(const std::string& dsn)
{
    /* With expand_dbname a DSN may be a database's name alone, as for psql. client_encoding comes
     * after dbname, so it overrides that of the string and of PGCLIENTENCODING: dumps and names are
     * UTF-8 on all servers, and compare as bytes. */
    const char* keys[] = {"dbname", "fallback_application_name", "client_encoding", nullptr};
    const char* values[] = {dsn.c_str(), "snowflake-shard", "UTF8", nullptr};
    std::unique_ptr<PGconn, void (*)(PGconn*)> handle(PQconnectdbParams(keys, values, 1), PQfinish);
    if (PQstatus(handle.get()) != CONNECTION_OK)
        throw Failure(trimmed(PQerrorMessage(handle.get())));
    handle_ = std::move(handle);
    const Kept before = std::exchange(extension_, Kept::never);
    version_ = PQserverVersion(handle_.get());
    cancel_ = {};
    notices_.server(server());
    notices_.receive_from(handle_.get());
    /* await_result() runs check_() meanwhile: a deadline or Ctrl-C must end a statement. */
    PQsetnonblocking(handle_.get(), 1);
    /* The setting is read before it is changed below: the sessions of pg_dump start with the same
     * default, of the role, the database or PGOPTIONS. The functions are qualified, because the
     * search_path is still the session's own. By run(), because a replication connection has no
     * extended protocol. */
    const Result session = run("SELECT pg_catalog.pg_backend_pid(), "
                               "pg_catalog.current_setting('quote_all_identifiers')");
    require_own_session(session.number(0, 0));
    if (session.text(0, 1) == "on")
        dump_options_ += " -c quote_all_identifiers=off";
    const char* strings = PQparameterStatus(handle_.get(), "standard_conforming_strings");
    if (strings != nullptr && std::string(strings) == "off")
        dump_options_ += " -c standard_conforming_strings=on";
    /* With an empty path no object that another role planted is found before PostgreSQL's own, and
     * all names are shown with their schema. They are compared as text, so they are quoted in one
     * way. Queries of catalogs without statistics look expensive, and compiling one takes longer
     * than running it. The timeouts of a role or a database are for its applications. */
    run("SET search_path = ''; SET quote_all_identifiers = off; SET jit = off; " +
        timeouts_sql("SET", "0"));
    extension_ = before == Kept::never ? Kept::never : Kept::lost;
}

std::string Connection::timeouts_sql(const std::string& scope, const std::string& value) const
{
    const std::string of_statements = scope + " statement_timeout = " + value;
    return version_ < 170000 ? of_statements
                             : of_statements + "; " + scope + " transaction_timeout = " + value;
}

/* A pooler gives its clients process IDs of its own. */
void Connection::require_own_session(std::int64_t process) const
{
    if (process != process_id())
        throw Failure(server() +
                      " is a connection pooler: other clients would get the session of this "
                      "command, with its settings and locks\nHINT:  Give the address of the server "
                      "itself. In the admin console of PgBouncer, SHOW DATABASES has host, port "
                      "and database of " +
                      visible(database()) + ".");
}

/* A statement that was given up shall not go on without us. The request is sent by a thread, which
 * would end with the program. */
Connection::~Connection()
{
    if (cancel_.valid())
        cancel_.wait_for(timeouts::kCancel);
}

Result Connection::query(const std::string& sql, const std::vector<std::string>& parameters)
{
    std::vector<const char*> values;
    for (const std::string& parameter : parameters)
        values.push_back(parameter.c_str());
    return with_tries(sql, [&] {
        return PQsendQueryParams(handle_.get(), sql.c_str(), static_cast<int>(values.size()),
                                 nullptr, values.data(), nullptr, nullptr, 0) == 1;
    });
}

void Connection::query_each(const std::string& sql, const TakeRow& take)
{
    in_transaction(sql, [&] {
        const bool is_sent =
            PQsendQuery(handle_.get(), sql.c_str()) == 1 && PQsetSingleRowMode(handle_.get()) == 1;
        return finish(Result(nullptr), is_sent, take);
    });
}

Result Connection::run(const std::string& sql)
{
    return with_tries(sql, [&] { return PQsendQuery(handle_.get(), sql.c_str()) == 1; });
}

bool Connection::was_cancelled_by_replay(const ServerError& error) const
{
    const char* standby = PQparameterStatus(handle_.get(), "in_hot_standby");
    return is_alive() && error.sqlstate == kSerializationFailure && standby != nullptr &&
           std::string(standby) == "on";
}

Result Connection::with_tries(const std::string& sql, const std::function<bool()>& send)
{
    settle();
    const bool is_alone = !is_in_transaction();
    for (int tries = 1;; tries++)
        try {
            return in_transaction(sql, [&] { return finish(send()); });
        } catch (const ServerError& error) {
            if (!is_alone || tries == kReplayTries || !was_cancelled_by_replay(error))
                throw;
            rollback();
            std::this_thread::sleep_for(std::chrono::milliseconds(100) * tries);
        }
}

/* The last result, as PQexec() returns it; last was taken before. All results are taken, also
 * after an error: libpq sends no further statement before PQgetResult() has returned NULL. */
Result Connection::finish(Result last, bool is_sent, const TakeRow& take)
{
    bool has_copy = false;
    take_note(last);
    while (PGresult* next = is_sent ? await_result() : nullptr) {
        const ExecStatusType status = PQresultStatus(next);
        Result result(next);
        take_note(result);
        if (status == PGRES_SINGLE_TUPLE) {
            or_give_up([&] { take(result); });
            continue;
        }
        /* A server that ends the session says why, before libpq finds the connection closed. */
        if (status != PGRES_FATAL_ERROR || last.sqlstate().empty())
            last = std::move(result);
        end_copy(handle_.get(), status);
        has_copy = has_copy || status == PGRES_COPY_IN || status == PGRES_COPY_OUT;
    }
    /* COPY TO STDOUT succeeds, and its rows are gone: without this error it would look done. */
    if (has_copy)
        throw ServerError("COPY FROM STDIN and COPY TO STDOUT are not possible here: use psql"
                          "\nSERVER:  " +
                              server(),
                          "");
    /* A statement that was not sent has no result: then the connection has the message. */
    if (!last.is_done())
        throw ServerError((last.error().empty() ? indented(trimmed(PQerrorMessage(handle_.get())))
                                                : last.error()) +
                              "\nSERVER:  " + server(),
                          last.sqlstate());
    return last;
}

PGresult* Connection::await_result()
{
    for (;;) {
        /* A long text, such as a dump, is not sent at once. Input is read meanwhile, because a
         * server that cannot send its notices does not read, either: both sides would wait for
         * ever. */
        const bool is_unsent = PQflush(handle_.get()) == 1;
        if (PQconsumeInput(handle_.get()) == 0 || PQisBusy(handle_.get()) == 0)
            return PQgetResult(handle_.get());
        wait(is_unsent);
    }
}

void Connection::begin_copy(const std::string& sql, ExecStatusType kind)
{
    prepare(sql);
    const bool is_sent = PQsendQuery(handle_.get(), sql.c_str()) == 1;
    PGresult* const begin = is_sent ? await_result() : nullptr;
    if (PQresultStatus(begin) == kind)
        PQclear(begin);
    else
        finish(Result(begin), is_sent);
}

/* Returns when the server has sent something, or, if is_unsent, takes something. */
void Connection::wait(bool is_unsent)
{
    check();
    pollfd socket = {PQsocket(handle_.get()), POLLIN, 0};
    if (is_unsent)
        socket.events |= POLLOUT;
    poll(&socket, 1, 50); /* not longer: check() must also run if the server is silent */
}

void Connection::check()
{
    if (check_)
        or_give_up(check_);
}

void Connection::or_give_up(const std::function<void()>& function)
{
    try {
        function();
    } catch (...) {
        /* Until settle() has ended, rollback() does nothing: the handler of the error does not wait
         * for a server that hangs. */
        cancel_ = cancel(handle_.get());
        throw;
    }
}

/* The request must have ended, too: it would cancel the next statement. PQcancel() returns when the
 * server has closed the connection of the request, which is after the signal was sent to the
 * backend. A Watch may end this wait as well: cancel_ is still set then, and the next statement
 * waits again. */
void Connection::settle()
{
    if (!cancel_.valid())
        return;
    /* The results of the statement that was given up: an error of SQLSTATE 57014, or all of its
     * rows. */
    while (PGresult* result = await_result())
        take_note(Result(result));
    while (cancel_.wait_for(std::chrono::milliseconds(50)) != std::future_status::ready)
        check();
    /* This comes before rollback(), which does nothing while it is set. */
    cancel_ = {};
    rollback();
}

void Connection::rollback()
{
    if (cancel_.valid() || !is_in_transaction())
        return;
    try {
        run("ROLLBACK");
    } catch (const std::exception&) {
        /* The connection is lost, and the transaction with it; or this was given up. */
    }
}

std::string Connection::identifier(const std::string& name) const
{
    return taken(PQescapeIdentifier(handle_.get(), name.c_str(), name.size()));
}

std::string Connection::literal(const std::string& text) const
{
    return taken(PQescapeLiteral(handle_.get(), text.c_str(), text.size()));
}

std::vector<Parameter> Connection::parameters() const
{
    std::vector<Parameter> found;
    const Options options(PQconninfo(handle_.get()), PQconninfoFree);
    for (PQconninfoOption* option = options.get(); option->keyword != nullptr; option++) {
        const std::string value = option->val == nullptr ? "" : option->val;
        if (!value.empty())
            found.push_back({option->keyword, value,
                             option->compiled != nullptr && value == option->compiled,
                             *option->dispchar == '*'});
    }
    return found;
}

std::string Connection::dsn_without_password() const
{
    /* The address that answered, of several that were given: pg_dump must reach the same server. */
    std::string dsn = dsn_setting("host", host()) + " " + dsn_setting("port", port());
    const std::set<std::string> left_out = {"host", "hostaddr", "port", "client_encoding",
                                            "options"};
    std::string options;
    for (const Parameter& one : parameters()) {
        /* The host's name can be one that only the certificate has. */
        if (one.key == "hostaddr")
            dsn += " " + dsn_setting(one.key, PQhostaddr(handle_.get()));
        if (one.key == "options")
            options = one.value;
        if (!one.is_secret && left_out.count(one.key) == 0)
            dsn += " " + dsn_setting(one.key, one.value);
    }
    /* pg_dump does not change these settings, and the server's functions, such as
     * pg_get_viewdef(), obey them. Only where needed: some versions of PgBouncer refuse options. */
    options += dump_options_;
    return dsn + (options.empty() ? "" : " " + dsn_setting("options", options));
}

std::string Connection::dsn_of_server() const
{
    std::string dsn = dsn_without_password();
    for (const Parameter& one : parameters())
        if (one.is_secret && one.key != "password")
            dsn += " " + dsn_setting(one.key, one.value);
    /* password() returns that of a password file, too. */
    return dsn + (password().empty() ? "" : " " + dsn_setting("password", password()));
}

Watch::Watch(Connection& connection, std::function<void()> check)
    : connection_(connection), before_(std::exchange(connection.check_, std::move(check)))
{
}

Watch::~Watch()
{
    connection_.check_ = std::move(before_);
}
