/* libpq in RAII: a connection and a result that clean up. Errors are thrown as SqlError. */
#pragma once

#include <libpq-fe.h>

#include <memory>
#include <stdexcept>
#include <string>
#include <utility>

namespace stress
{

struct SqlError : std::runtime_error {
    SqlError(const std::string& message, std::string state, bool is_lost)
        : std::runtime_error(message), sqlstate(std::move(state)), connection_lost(is_lost)
    {
    }
    std::string sqlstate; /* empty if the error is not the server's */
    bool connection_lost;
};

using Result = std::unique_ptr<PGresult, decltype(&PQclear)>;

inline Result own(PGresult* result)
{
    return {result, PQclear};
}

class Connection
{
public:
    explicit Connection(const std::string& conninfo)
        : connection_(PQconnectdb(conninfo.c_str()), PQfinish)
    {
        if (PQstatus(raw()) != CONNECTION_OK)
            fail("connecting");
    }

    PGconn* raw() const { return connection_.get(); }

    [[noreturn]] void fail(const std::string& doing, const PGresult* result = nullptr) const
    {
        const char* const state = PQresultErrorField(result, PG_DIAG_SQLSTATE);
        /* No SQLSTATE: libpq made the result. After a failed write PQstatus() may still be OK. */
        const bool is_lost =
            PQstatus(raw()) != CONNECTION_OK || (result != nullptr && state == nullptr);
        throw SqlError(doing + ": " + PQerrorMessage(raw()), state == nullptr ? "" : state,
                       is_lost);
    }

    /* For statements whose result is not needed. */
    void execute(const std::string& sql) const
    {
        const Result result = own(PQexec(raw(), sql.c_str()));
        require(result, sql);
    }

    /* Throws unless the result is rows, a finished command or the end of a pipeline. */
    void require(const Result& result, const std::string& doing) const
    {
        switch (PQresultStatus(result.get())) {
        case PGRES_TUPLES_OK:
        case PGRES_COMMAND_OK:
        case PGRES_PIPELINE_SYNC:
        case PGRES_SINGLE_TUPLE:
            return;
        default:
            fail(doing, result.get());
        }
    }

private:
    std::unique_ptr<PGconn, decltype(&PQfinish)> connection_;
};

/*
 * Adds the extension's schema to search_path, because the extension may be in any schema. It comes
 * last, so that a sequence without a schema is found where it was before.
 */
inline void find_extension(const Connection& connection)
{
    connection.execute("SELECT set_config('search_path', current_setting('search_path') || ', ' || "
                       "quote_ident(nspname), false) FROM pg_extension "
                       "JOIN pg_namespace n ON n.oid = extnamespace WHERE extname = 'snowflake'");
}

} // namespace stress
