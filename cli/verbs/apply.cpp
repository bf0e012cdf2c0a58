#include "verbs/apply.h"

#include <algorithm>
#include <chrono>
#include <thread>

#include "base/interrupt.h"
#include "base/shards.h"
#include "postgres/sql_text.h"
#include "verbs/record.h"

namespace
{

/* The server may have committed before the session or the connection was lost, so "failed" would be
 * a guess. A cancel of this session ends that of the shard. Another error, such as that of a
 * deferred constraint, has rolled the change back. */
void require_known(const ServerError& error, const Connection& connection)
{
    if (!connection.is_alive() || error.sqlstate == kConnectionFailure ||
        error.sqlstate == kQueryCanceled)
        throw UnknownOutcome("the session was lost, and the change can be there or not: " +
                             std::string(error.what()));
}

/* The transaction of the connection has written nothing, so its end is never an error. COMMIT,
 * because ROLLBACK would release the lock of the extension. */
void end(Connection& connection)
{
    try {
        connection.run("COMMIT");
    } catch (const std::exception&) {
        /* As in Connection::rollback(). */
    }
}

void commit(Connection& connection)
{
    try {
        commit_session(connection);
    } catch (const ServerError& error) {
        require_known(error, connection);
        throw;
    }
    end(connection);
}

/* In the session of the owner, too: see begin_in_shard(). */
std::string lock_timeout_of(const RunOptions& options, const std::string& set)
{
    return options.lock_timeout > 0
               ? set + " lock_timeout = " + milliseconds_of(options.lock_timeout)
               : "";
}

/* READ COMMITTED, so that the record that is read under the lock is the last one. A snapshot of
 * REPEATABLE READ would be taken by the SELECT of the lock, before it waits, and would not show the
 * record of the run that held the lock. client_connection_check_interval: the backend of a command
 * that is killed ends, and the session with it. */
void begin(Connection& connection, const RunOptions& options)
{
    connection.run("BEGIN ISOLATION LEVEL READ COMMITTED; "
                   "SET LOCAL client_connection_check_interval = '500ms'; " +
                   connection.timeouts_sql("SET LOCAL", "DEFAULT") +
                   lock_timeout_of(options, "; SET LOCAL"));
}

/* In the same transaction as the change: a crash keeps both or none. */
bool run_in_transaction(Connection& connection, const Shard& shard, const Change& change,
                        const RunOptions& options)
{
    begin(connection, options);
    Record record;
    if (!change.name.empty()) {
        lock_record(connection, shard, options.lock_timeout > 0);
        record = read_record(connection, shard);
        if (record.has(change)) {
            end(connection);
            return false;
        }
        record.add(change);
    }
    begin_in_shard(connection, shard, "BEGIN");
    run_in_session(connection, change.sql);
    if (!change.name.empty())
        run_in_session(connection, writing_of(connection, shard, record));
    commit(connection);
    return true;
}

/* For CREATE INDEX CONCURRENTLY, VACUUM and others that call PreventInTransactionBlock(). The
 * settings are of the connection, as there is no transaction. */
void run_alone(Connection& connection, const Shard& shard, const Change& change,
               const RunOptions& options)
{
    connection.run("SET client_connection_check_interval = '500ms'; " +
                   connection.timeouts_sql("SET", "DEFAULT") + lock_timeout_of(options, "; SET"));
    begin_in_shard(connection, shard, "");
    try {
        run_alone_in_session(connection, change.sql);
    } catch (const ServerError& error) {
        /* The statement commits by itself: it may have done so before the session was lost. */
        require_known(error, connection);
        connection.run(connection.timeouts_sql("SET", "0"));
        if (error.sqlstate == kEndsTransaction)
            throw WrongForAll(error.what());
        throw;
    }
    connection.run(connection.timeouts_sql("SET", "0"));
}

/* Code of the shard can raise the same SQLSTATEs, so these are errors of this shard alone. */
std::string hint_of(const ServerError& error, const RunOptions& options)
{
    if (error.sqlstate == kActiveTransaction && !options.no_transaction)
        return "\nHINT:  It cannot run in a transaction: use --no-transaction.";
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
