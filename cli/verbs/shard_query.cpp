#include "verbs/shard_query.h"

#include "base/standard_output.h"
#include "base/timeouts.h"
#include "fleet/locked.h"
#include "postgres/cursor.h"
#include "postgres/row_text.h"
#include "postgres/sql_text.h"

void ShardQuery::run(ServerSet& servers, std::vector<AskedServer>& asked)
{
    end_sessions_at_interrupt();
    on_all_connections(servers, asked, [&](Connection& connection, AskedServer& server) {
        work_on(connection, server);
    });
}

/* Here, so that an error of it is one of the shard: the server may be lost at any time.
 * cursor_tuple_fraction = 1: all rows are fetched, and the default plans for the first 10 %.
 * idle_in_transaction_session_timeout = 0: between two FETCHes the session waits for the turn
 * of its shard, and the timeout of a role would end it there. statement_timeout is of each
 * statement, so DECLARE and each FETCH have it anew, and the wait between them does not
 * count. client_connection_check_interval: the backend of a command that is killed ends, and does
 * not finish the query. row_security = off: a policy that would hide rows is an error. Values of
 * all servers are written in one form. */
std::string ShardQuery::beginning(const Connection& connection) const
{
    std::string sql = "BEGIN READ ONLY; SET LOCAL cursor_tuple_fraction = 1; "
                      "SET LOCAL idle_in_transaction_session_timeout = 0; "
                      "SET LOCAL client_connection_check_interval = '500ms'; "
                      "SET LOCAL row_security = off; " +
                      value_text_settings("SET LOCAL") +
                      connection.timeouts_sql("SET LOCAL", "DEFAULT") + "; ";
    if (options_.statement_timeout > 0)
        sql +=
            "SET LOCAL statement_timeout = " + milliseconds_of(options_.statement_timeout) + "; ";
    return sql + lock_timeout_sql(timeouts::kReadLock, true) + "; SELECT pg_backend_pid()";
}

namespace
{

std::string holder_of(const ServerError& error, Connection& connection, const Shard& shard)
{
    if (error.sqlstate != kLockTimeout || !connection.is_alive())
        return "";
    const Locked locked = find_locked(connection);
    const auto found = locked.find(shard.oid);
    return found == locked.end() ? "" : "\nDETAIL:  It is " + found->second;
}

} // namespace

void ShardQuery::work_on(Connection& connection, AskedServer& server)
{
    for (std::size_t i = 0;
         connection.is_alive() && (i = (*server.next)++) < server.shards.size();) {
        const Asked& asked = server.shards[i];
        connection.label("shard " + std::to_string(asked.shard.number) + ": ");
        try {
            ask_with_tries(connection, asked);
        } catch (const ServerError& error) {
            connection.rollback();
            add_error(explained(error, connection, asked.shard) +
                          holder_of(error, connection, asked.shard),
                      asked.shard);
        } catch (const Failure& error) {
            connection.rollback();
            add_error(error.what(), asked.shard);
        }
        /* The shards after this one wait for it, also after an error. */
        sink_.end(asked.place);
        reopen_if_lost(connection);
    }
    connection.label("");
    /* The shards that are left are of the other connections to the server. The last one that is
     * lost gives each its error, and ends it: shards of other servers wait for it. */
    if (connection.is_alive() || --*server.alive > 0)
        return;
    for (std::size_t i = 0; (i = (*server.next)++) < server.shards.size();) {
        const Asked& asked = server.shards[i];
        add_error("not asked, because the connection to " + server.server + " was lost",
                  asked.shard);
        sink_.end(asked.place);
    }
}

void ShardQuery::add_error(const std::string& error, const Shard& shard)
{
    const std::lock_guard<std::mutex> lock(lock_);
    errors_[error].insert(shard.number);
}

/* The server computes all rows before it sends the first, so the replay of a standby cancels the
 * query while the sink has none. */
void ShardQuery::ask_with_tries(Connection& connection, const Asked& asked)
{
    bool has_rows = false;
    for (int tries = 1;; tries++)
        try {
            return ask(connection, asked, has_rows);
        } catch (const ServerError& error) {
            if (has_rows || tries == kReplayTries || !connection.was_cancelled_by_replay(error))
                throw;
            connection.rollback();
        }
}

void ShardQuery::ask(Connection& connection, const Asked& asked, bool& has_rows)
{
    if (!asked.problem.empty())
        throw Failure(asked.problem);
    /* Nobody would get the rows. */
    require_output();
    Span span = {};
    Parameters parameters;
    if (since_) {
        span = since_->settle(connection, asked.shard, asked.source);
        parameters = {std::to_string(span.first), std::to_string(span.last)};
    }
    const Result process = connection.run(beginning(connection));
    OwnerSession session(connection, static_cast<int>(process.number(0, 0)),
                         options_.statement_timeout);
    try {
        fetch(connection, session, asked, declare(connection, session, asked, parameters),
              has_rows);
    } catch (const ServerError&) {
        if (!session.was_ended())
            throw;
        throw Failure("its code went on after --timeout, so the session was ended");
    }
    connection.run("COMMIT");
    if (since_)
        since_->note(asked.shard, span);
}

/* A cursor, so that no shard's rows have to fit into memory; it may wait for its turn. The library
 * runs the query, and this cursor reads only its result: no code of the shard runs after the call
 * of rows_as_owner(), in a FETCH. */
std::vector<Column> ShardQuery::declare(Connection& connection, OwnerSession& session,
                                        const Asked& asked, const Parameters& parameters)
{
    session.begin_statement();
    std::vector<Column> columns = read_columns(connection, asked.shard, options_.sql, parameters);
    connection.query("DECLARE snowflake_shard NO SCROLL CURSOR FOR\n" +
                     rows_sql(connection, asked.shard, options_.sql, parameters, columns.size()));
    return columns;
}

void ShardQuery::fetch(Connection& connection, OwnerSession& session, const Asked& asked,
                       const std::vector<Column>& columns, bool& has_rows)
{
    const Shard& shard = asked.shard;
    session.end_statement();
    sink_.begin(shard, columns);
    session.begin_statement();
    read_cursor(connection, "snowflake_shard", columns, [&](std::vector<Row> rows) {
        session.end_statement();
        has_rows = true;
        for (Row& row : rows)
            row.insert(row.begin(), {shard.number, shard.schema});
        if (since_)
            since_->begin_rows(shard);
        sink_.add(asked.place, std::move(rows));
        require_output();
    });
    session.end_statement();
}
