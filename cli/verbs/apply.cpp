#include "verbs/apply.h"

#include <algorithm>
#include <chrono>
#include <memory>
#include <thread>

#include "base/interrupt.h"
#include "base/shards.h"
#include "postgres/locked_schemas.h"
#include "postgres/settings.h"
#include "postgres/sql_text.h"
#include "verbs/record.h"

namespace
{

const std::string kEmptyPath = "SET search_path = ''; ";

/* The server may have committed before the connection was lost, so "failed" would be a guess. An
 * error on a connection that is alive, such as that of a deferred constraint, has rolled the change
 * back. */
void commit(Connection& connection)
{
    try {
        connection.run("COMMIT");
    } catch (const ServerError& error) {
        if (connection.is_alive())
            throw;
        throw UnknownOutcome("the connection was lost during COMMIT, and the change can be there "
                             "or not: " +
                             std::string(error.what()));
    }
}

/* READ COMMITTED, so that the record that is read under the lock is the last one. A snapshot of
 * REPEATABLE READ would be taken by the SELECT of the lock, before it waits, and would not show the
 * record of the run that held the lock. A change without a record keeps the session's
 * default_transaction_isolation. client_connection_check_interval: the backend of a command that is
 * killed ends, and does not finish the statement. row_security = off: an UPDATE that would leave
 * out rows because of a policy is an error. */
void begin(Connection& connection, const Change& change, const RunOptions& options)
{
    connection.run(
        std::string("BEGIN") + (change.name.empty() ? "" : " ISOLATION LEVEL READ COMMITTED") +
        "; SET LOCAL client_connection_check_interval = '500ms'; SET LOCAL row_security = off; " +
        connection.timeouts_sql("SET LOCAL", "DEFAULT"));
    if (options.lock_timeout > 0)
        connection.run("SET LOCAL lock_timeout = " + milliseconds_of(options.lock_timeout));
}

bool run_in_transaction(Connection& connection, const Shard& shard, const Change& change,
                        const RunOptions& options)
{
    begin(connection, change, options);
    Record record;
    if (!change.name.empty()) {
        lock_record(connection, shard, options.lock_timeout > 0);
        record = read_record(connection, shard);
        if (record.has(change)) {
            connection.rollback();
            return false;
        }
        record.add(change);
    }
    run_in_shard(connection, shard, change.sql);
    if (!change.name.empty())
        /* In the same transaction as the change: a crash keeps both or none. */
        run_in_shard(connection, shard, writing_of(connection, shard, record));
    commit(connection);
    return true;
}

/* A session in a transaction that keeps the name of a schema: a statement by itself finds its table
 * by that name, and the owner could give the name to a schema with a table of another role. None
 * where the SQL works with the caller's rights: there it could change the schema, and would wait
 * for this session. CREATE INDEX CONCURRENTLY waits for older snapshots (WaitForOlderSnapshots()):
 * the last query has one until a statement of the simple protocol takes the place of its portal. */
std::unique_ptr<Connection> hold_name(Connection& connection, const Shard& shard,
                                      const RunOptions& options)
{
    if (connection.query("SELECT snowflake_internal.is_callers($1::oid)", {shard.oid}).flag(0, 0))
        return nullptr;
    auto holder = std::make_unique<Connection>(connection.dsn_of_server());
    withstand_settings(*holder);
    holder->run("BEGIN");
    if (options.lock_timeout > 0)
        holder->run("SET LOCAL lock_timeout = " + milliseconds_of(options.lock_timeout));
    if (!lock_schemas(*holder, sql_array({shard.quoted}), sql_array({shard.oid})))
        throw Failure("schema " + visible(shard.schema) +
                      " was renamed meanwhile, so the statement did not run.");
    holder->run("SELECT");
    return holder;
}

/* For CREATE INDEX CONCURRENTLY, VACUUM and others that call PreventInTransactionBlock(). Several
 * statements in one message are an implicit transaction block, so the server refuses them there
 * with 25001. The settings are of the session, as there is no transaction. */
void run_alone(Connection& connection, const Shard& shard, const Change& change,
               const RunOptions& options)
{
    const std::unique_ptr<Connection> holder = hold_name(connection, shard, options);
    connection.run("SET search_path = " + path_alone(connection, shard, change.sql) + "; " +
                   connection.timeouts_sql("SET", "DEFAULT"));
    if (options.lock_timeout > 0)
        connection.run("SET lock_timeout = " + milliseconds_of(options.lock_timeout));
    try {
        connection.run(change.sql);
    } catch (const ServerError& error) {
        if (connection.is_alive()) {
            connection.run(kEmptyPath + connection.timeouts_sql("SET", "0"));
            throw;
        }
        /* The statement commits by itself: it may have done so before the connection was lost. */
        throw UnknownOutcome(std::string("the connection was lost: ") + error.what());
    }
    /* A BEGIN. Without a rollback the next shard's statements would run in this transaction. */
    if (connection.is_in_transaction())
        throw WrongForAll("the SQL left a transaction open: it is rolled back.");
    connection.run(kEmptyPath + connection.timeouts_sql("SET", "0"));
}

/* Code of the shard can raise the same SQLSTATEs, so these are errors of this shard alone. */
std::string hint_of(const ServerError& error, const RunOptions& options)
{
    if (error.sqlstate == kActiveTransaction)
        return options.no_transaction
                   ? "\nHINT:  --no-transaction takes one statement."
                   : "\nHINT:  It cannot run in a transaction: use --no-transaction.";
    return error.sqlstate == kEndsTransaction ? kNoTransactionOfItsOwn : "";
}

bool run_once(Connection& connection, const Shard& shard, const Change& change,
              const RunOptions& options)
{
    if (!options.no_transaction)
        return run_in_transaction(connection, shard, change, options);
    run_alone(connection, shard, change, options);
    return true;
}

/* Others were in the way. The transaction was rolled back, so a second try repeats nothing. Outside
 * of a transaction a statement that failed can have left something, as CREATE INDEX CONCURRENTLY
 * does, so it is not tried again. */
bool may_pass(const ServerError& error, const RunOptions& options)
{
    const std::set<std::string> kPassing = {kLockTimeout, kDeadlock, kSerializationFailure};
    return !options.no_transaction && kPassing.count(error.sqlstate) > 0;
}

/* Between tries the wait grows from 100 ms to 10 s: the lock that is in the way is often that of a
 * long query, and each try makes clients wait behind it. In steps of 100 ms, so that Ctrl-C ends
 * the wait. Returns false after Ctrl-C. */
bool wait(int tries)
{
    const std::chrono::milliseconds step(100);
    const int steps = std::min(100, 1 << std::min(tries - 1, 10));
    for (int i = 0; i < steps && !is_interrupted(); i++)
        std::this_thread::sleep_for(step);
    return !is_interrupted();
}

} // namespace

bool apply(Connection& connection, const Shard& shard, const std::vector<Change>& changes,
           const RunOptions& options)
{
    bool is_changed = false;
    for (const Change& change : changes)
        for (int tries = 1;; tries++)
            try {
                is_changed = run_once(connection, shard, change, options) || is_changed;
                break;
            } catch (const ServerError& error) {
                /* Before the wait: after ROLLBACK TO the transaction still has the lock of the
                 * record, and another run would wait for it all the time. */
                connection.rollback();
                if (tries < options.tries && may_pass(error, options) && wait(tries))
                    continue;
                throw ServerError((change.name.empty() ? "" : "change " + change.name + ": ") +
                                      explained(error, connection, shard) + hint_of(error, options),
                                  error.sqlstate);
            }
    return is_changed;
}
