#include "verbs/shard_query.h"

#include "base/standard_output.h"
#include "base/timeouts.h"
#include "fleet/locked.h"
#include "postgres/row_text.h"
#include "postgres/sql_text.h"

void ShardQuery::run(ServerSet& servers, std::vector<AskedServer>& asked)
{
    on_all_connections(servers, asked, [&](Connection& connection, AskedServer& server) {
        work_on(connection, server);
    });
}

/* idle_in_transaction_session_timeout = 0: between two FETCHes the session waits for the turn of
 * its shard, and the timeout of a role would end it there. statement_timeout is of each statement,
 * so each FETCH has it anew, and the wait between them does not count. It ends the session,
 * also if the code there catches cancels. client_connection_check_interval: the backend of a
 * command that is killed ends, and the session with it. */
std::string ShardQuery::beginning(const Connection& connection) const
{
    std::string sql = "BEGIN READ ONLY; SET LOCAL idle_in_transaction_session_timeout = 0; "
                      "SET LOCAL client_connection_check_interval = '500ms'; " +
                      lock_timeout_sql(timeouts::kReadLock, true) + "; " +
                      connection.timeouts_sql("SET LOCAL", "DEFAULT");
    if (options_.statement_timeout > 0)
        sql += "; SET LOCAL statement_timeout = " + milliseconds_of(options_.statement_timeout);
    return sql;
}

/* cursor_tuple_fraction = 1: all rows are fetched, and the default plans for the first 10 %.
 * Values of all servers are written in one form. */
std::string ShardQuery::beginning_in_shard()
{
    return "BEGIN READ ONLY; SET LOCAL cursor_tuple_fraction = 1; " +
           value_text_settings("SET LOCAL");
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

/* The replay of a standby mostly cancels a query before its first rows. Rows that the sink has
 * would come twice. */
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
    connection.run(beginning(connection));
    begin_in_shard(connection, asked.shard, beginning_in_shard());
    read(connection, asked, parameters, has_rows);
    commit_session(connection);
    connection.run("COMMIT");
    if (since_)
        since_->note(asked.shard, span);
}

/* A cursor, so that no shard's rows have to fit into memory; it may wait for its turn. */
void ShardQuery::read(Connection& connection, const Asked& asked, const Parameters& parameters,
                      bool& has_rows)
{
    const Shard& shard = asked.shard;
    const std::vector<Column> columns = open_in_session(connection, options_.sql, parameters);
    sink_.begin(shard, columns);
    read_in_session(connection, columns, [&](std::vector<Row> rows) {
        has_rows = true;
        for (Row& row : rows)
            row.insert(row.begin(), {shard.number, shard.schema});
        if (since_)
            since_->begin_rows(shard);
        sink_.add(asked.place, std::move(rows));
        require_output();
    });
}
