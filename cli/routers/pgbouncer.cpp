#include "routers/pgbouncer.h"

#include <algorithm>

#include <poll.h>

#include "base/match.h"
#include "base/timeouts.h"
#include "postgres/dsn.h"
#include "postgres/error_text.h"

namespace
{

/* The column by its name, because versions of PgBouncer differ in their columns; empty if there is
 * none. */
std::string text_in(const Result& rows, int row, const std::string& name)
{
    const int number = rows.column(name);
    return number < 0 ? "" : rows.text(row, number);
}

/* PgBouncer has refused a command. The console is connected; if it is lost, the
 * error is a plain Failure. */
struct ConsoleError : Failure {
    using Failure::Failure;
};

/* The row in which a column has this value; -1 if there is none. */
int find_row(const Result& rows, const std::string& name, const std::string& value)
{
    for (int i = 0; i < rows.rows(); i++)
        if (text_in(rows, i, name) == value)
            return i;
    return -1;
}

} // namespace

PgBouncer::PgBouncer(Pooler pooler) : pooler_(std::move(pooler)), handle_(nullptr, PQfinish) {}

std::string PgBouncer::name() const
{
    if (handle_ == nullptr)
        return "PgBouncer";
    const auto text = [](const char* value) { return std::string(value == nullptr ? "" : value); };
    return "PgBouncer " + text(PQhost(handle_.get())) + ":" + text(PQport(handle_.get()));
}

void PgBouncer::connect()
{
    check_dsn(pooler_.console, "--pgbouncer");
    /* The connection string may have another time. */
    const char* keys[] = {"connect_timeout", "dbname", "fallback_application_name", nullptr};
    const std::string patience = std::to_string(timeouts::kPooler.count());
    const char* values[] = {patience.c_str(), pooler_.console.c_str(), "snowflake-shard", nullptr};
    handle_.reset(PQconnectdbParams(keys, values, 1));
    if (PQstatus(handle_.get()) != CONNECTION_OK)
        throw Failure(trimmed(PQerrorMessage(handle_.get())));
}

Result PgBouncer::run(const std::string& command)
{
    return run(command, Clock::now() + timeouts::kPooler);
}

/* PgBouncer may have been restarted, and a console waits for its PAUSE for ever. */
bool PgBouncer::is_ready()
{
    return handle_ != nullptr && PQconsumeInput(handle_.get()) == 1 &&
           PQstatus(handle_.get()) == CONNECTION_OK &&
           PQtransactionStatus(handle_.get()) == PQTRANS_IDLE;
}

/* The console understands simple queries only. One that is late may still be carried out. It leaves
 * the handle busy, so the next command connects anew. */
Result PgBouncer::run(const std::string& command, Clock::time_point deadline)
{
    if (!is_ready())
        connect();
    if (PQsendQuery(handle_.get(), command.c_str()) == 1)
        while (PQconsumeInput(handle_.get()) == 1 && PQisBusy(handle_.get()) == 1) {
            if (Clock::now() > deadline)
                throw Late(command + " did not end in time");
            pollfd socket = {PQsocket(handle_.get()), POLLIN, 0};
            /* The wait lasts 10 ms, so that the deadline is checked also while PgBouncer is silent.
             */
            poll(&socket, 1, 10);
        }
    Result result(PQgetResult(handle_.get()));
    const std::string problem = trimmed(PQerrorMessage(handle_.get()));
    while (PGresult* next = PQgetResult(handle_.get()))
        PQclear(next);
    if (!result.is_done() && PQstatus(handle_.get()) == CONNECTION_OK)
        throw ConsoleError(command + ": " + problem);
    if (!result.is_done())
        throw Failure(command + ": " + problem);
    return result;
}

void PgBouncer::require_admin()
{
    run("SHOW VERSION");
    run("SHOW CONFIG");
    /* The console itself cannot be paused. stats_users are told that they may not. */
    try {
        run("PAUSE \"pgbouncer\"");
    } catch (const Failure& error) {
        const std::string text = error.what();
        if (text.find("cannot pause admin db") == std::string::npos)
            throw;
    }
}

std::string PgBouncer::version()
{
    const Result version = run("SHOW VERSION");
    const auto found = version.rows() == 0
                           ? std::vector<std::string>()
                           : match(text_in(version, 0, "version"), "^PgBouncer ([0-9.]+)");
    return found.empty() ? "" : found[1];
}

std::string PgBouncer::setting(const std::string& key)
{
    const Result config = run("SHOW CONFIG");
    const int row = find_row(config, "key", key);
    return row < 0 ? "" : text_in(config, row, "value");
}

void PgBouncer::for_each_alias(const std::function<void(const Result& rows, int row)>& work)
{
    const Result databases = run("SHOW DATABASES");
    for (int i = 0; i < databases.rows(); i++)
        if (pooler_.aliases.count(text_in(databases, i, "name")) > 0)
            work(databases, i);
}

std::map<std::string, Address> PgBouncer::places()
{
    std::map<std::string, Address> places;
    for_each_alias([&](const Result& rows, int i) {
        places[text_in(rows, i, "name")] = {text_in(rows, i, "host"), text_in(rows, i, "port"),
                                            text_in(rows, i, "database")};
    });
    return places;
}

/* An alias without a pool_mode of its own has that of the configuration. That of a user takes
 * precedence over both, in some versions also where the alias names the user: SHOW POOLS says which
 * one is in effect. */
std::map<std::string, Aliases> PgBouncer::with_session_pooling()
{
    const std::string mode = setting("pool_mode");
    std::map<std::string, Aliases> found;
    for_each_alias([&](const Result& rows, int i) {
        const std::string own = text_in(rows, i, "pool_mode");
        if ((own.empty() ? mode : own) == "session")
            found[""].insert(text_in(rows, i, "name"));
    });
    const Result pools = run("SHOW POOLS");
    for (int i = 0; i < pools.rows(); i++)
        if (const std::string alias = text_in(pools, i, "database");
            text_in(pools, i, "pool_mode") == "session" && pooler_.aliases.count(alias) > 0 &&
            found[""].count(alias) == 0)
            found[text_in(pools, i, "user")].insert(alias);
    return found;
}

int PgBouncer::connections()
{
    int count = 0;
    for_each_alias([&](const Result& rows, int i) {
        count += std::stoi(text_in(rows, i, "current_connections"));
    });
    return count;
}

Aliases PgBouncer::find_paused()
{
    Aliases paused;
    for_each_alias([&](const Result& rows, int i) {
        if (text_in(rows, i, "paused") == "1")
            paused.insert(text_in(rows, i, "name"));
    });
    return paused;
}

void PgBouncer::require_answer(Clock::time_point deadline)
{
    run("SHOW VERSION", std::min(deadline, Clock::now() + timeouts::kPooler));
}

void PgBouncer::pause(Clock::time_point deadline)
{
    /* This comes before the answer: a PAUSE whose answer is lost may have been carried out. */
    is_held_ = true;
    try {
        for (const std::string& alias : pooler_.aliases)
            run("PAUSE " + console_name(alias), deadline);
    } catch (const Late& late) {
        throw Late(late.what() + std::string(": a client has not ended its transaction, or with "
                                             "session pooling its connection"));
    }
}

void PgBouncer::resume()
{
    /* A command that was killed may have paused the aliases, even if this object has not. */
    is_held_ = true;
    for (const std::string& alias : pooler_.aliases)
        try {
            run("RESUME " + console_name(alias));
        } catch (const ConsoleError&) { /* it may have been running */
        }
    /* PgBouncer refuses RESUME of an alias that is not paused, so that error is ignored. SHOW
     * DATABASES tells whether one is still paused. */
    if (const Aliases paused = find_paused(); !paused.empty())
        throw Failure("RESUME has left " + named(paused) + " paused");
    is_held_ = false;
}

void PgBouncer::disconnect_clients()
{
    is_held_ = true;
    for (const std::string& alias : pooler_.aliases)
        run("KILL " + console_name(alias));
}

void PgBouncer::reload(const Address& place)
{
    is_held_ = true;
    /* Some versions report success though a file has an error, and keep the old places. So the
     * places are compared. */
    run("RELOAD");
    const auto places = this->places();
    for (const std::string& alias : pooler_.aliases) {
        const auto now = places.find(alias);
        if (now == places.end() || !(now->second == place))
            throw Failure("after RELOAD " +
                          (pooler_.aliases.size() == 1 ? "it" : "alias " + alias) + " leads to " +
                          (now == places.end() ? "nothing" : visible(now->second.text())) +
                          ", not to " + visible(place.text()) +
                          "; PgBouncer's log says why. Let [databases] of " + pooler_.file +
                          " lead it there, and RELOAD");
    }
}

PgBouncer::Paused PgBouncer::paused()
{
    /* No error, because the result is added to the text of another error. */
    try {
        return {find_paused(), true};
    } catch (const Failure&) {
        return {is_held_ ? pooler_.aliases : Aliases(), false};
    }
}
