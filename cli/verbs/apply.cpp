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

/* Errors of run_as_owner(): a statement that cannot run in a function (active_sql_transaction), and
 * one that would end the transaction (invalid_transaction_termination). */
const std::string kActiveTransaction = "25001";
const std::string kEndsTransaction = "2D000";

const std::string kNoTransactionOfItsOwn =
    "\nHINT:  run begins and ends the transaction of each shard: remove BEGIN, COMMIT and ROLLBACK "
    "from the SQL.";

/* The savepoint is gone if the SQL has ended the transaction. The state of the transaction alone
 * does not show that: after "COMMIT; BEGIN" or COMMIT AND CHAIN the session is in a transaction
 * again, and the record would be written without the lock on it. The server answers with 3B001
 * there, and with 25P01 outside of a transaction. */
void leave_savepoint(Connection& connection, const std::string& command)
{
    try {
        connection.run(command + " SAVEPOINT snowflake_shard");
    } catch (const ServerError&) {
        /* run has not sent its COMMIT: the server rolls the transaction back. */
        if (!connection.is_alive())
            throw;
        throw WrongForAll("the SQL ended its transaction itself, and can have changed a part of "
                          "the shard." +
                          kNoTransactionOfItsOwn);
    }
}

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
 * default_transaction_isolation. */
void begin(Connection& connection, const Change& change, const RunOptions& options)
{
    connection.run(change.name.empty() ? "BEGIN" : "BEGIN ISOLATION LEVEL READ COMMITTED");
    if (options.lock_timeout > 0)
        connection.run("SET LOCAL lock_timeout = " + milliseconds_of(options.lock_timeout));
}

/* The savepoint shows whether the SQL has ended the transaction. */
void run_as_caller(Connection& connection, const Shard& shard, const std::string& sql)
{
    connection.run("SET LOCAL search_path = " + shard.quoted + "; SAVEPOINT snowflake_shard");
    try {
        connection.run(sql);
    } catch (const ServerError& error) {
        if (connection.is_alive())
            /* Only a test whether the SQL has committed a part before its error. The caller ends
             * the transaction. */
            leave_savepoint(connection, "ROLLBACK TO");
        throw;
    }
    /* Before the record is written: SQL that has ended its transaction must not be recorded. */
    leave_savepoint(connection, "RELEASE");
}

bool run_in_transaction(Connection& connection, const Target& target, const Change& change,
                        const RunOptions& options)
{
    const Shard& shard = target.shard;
    const auto run = target.rights.is_as_owner ? run_as_owner : run_as_caller;
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
    run(connection, shard, change.sql);
    if (!change.name.empty())
        /* In the same transaction as the change: a crash keeps both or none. */
        run(connection, shard, writing_of(connection, shard, record));
    commit(connection);
    return true;
}

/* For CREATE INDEX CONCURRENTLY, VACUUM and others that call PreventInTransactionBlock(). Several
 * statements in one message are an implicit transaction block, so the server refuses them there
 * with 25001. The settings are of the session, as there is no transaction; the next shard sets them
 * anew. */
void run_alone(Connection& connection, const Shard& shard, const Change& change,
               const RunOptions& options)
{
    connection.run("SET search_path = " + shard.quoted);
    if (options.lock_timeout > 0)
        connection.run("SET lock_timeout = " + milliseconds_of(options.lock_timeout));
    try {
        connection.run(change.sql);
    } catch (const ServerError& error) {
        if (connection.is_alive())
            throw;
        /* The statement commits by itself: it may have done so before the connection was lost. */
        throw UnknownOutcome(std::string("the connection was lost: ") + error.what());
    }
    /* A BEGIN. Without a rollback the next shard's statements would run in this transaction. */
    if (connection.is_in_transaction())
        throw WrongForAll("the SQL left a transaction open: it is rolled back.");
}

/* Errors by the statements, which are the same in all shards: the run stops, and says how to mend
 * it. Where the SQL runs as the owner, code of the shard can raise the same SQLSTATEs: then the
 * error is of this shard alone. */
[[noreturn]] void refuse(const Target& target, const std::string& text)
{
    if (target.rights.is_as_owner)
        throw Failure(text);
    throw WrongForAll(text);
}

bool run_once(Connection& connection, const Target& target, const Change& change,
              const RunOptions& options)
{
    try {
        if (!options.no_transaction)
            return run_in_transaction(connection, target, change, options);
        run_alone(connection, target.shard, change, options);
        return true;
    } catch (const ServerError& error) {
        const std::string text = error.what();
        if (error.sqlstate == kActiveTransaction)
            refuse(target,
                   text + (options.no_transaction ? "\nHINT:  --no-transaction takes one statement."
                                                  : "\nHINT:  It cannot run in a transaction: use "
                                                    "--no-transaction."));
        if (error.sqlstate == kEndsTransaction && target.rights.is_as_owner)
            refuse(target, text + kNoTransactionOfItsOwn);
        throw;
    }
}

/* Others were in the way: lock_not_available (lock_timeout, NOWAIT), deadlock_detected and
 * serialization_failure. The transaction was rolled back, so a second try repeats nothing. Outside
 * of a transaction a statement that failed can have left something, as CREATE INDEX CONCURRENTLY
 * does, so it is not tried again. */
bool may_pass(const ServerError& error, const RunOptions& options)
{
    const std::set<std::string> kPassing = {"55P03", "40P01", "40001"};
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

bool apply(Connection& connection, const Target& target, const std::vector<Change>& changes,
           const RunOptions& options)
{
    bool is_changed = false;
    for (const Change& change : changes)
        for (int tries = 1;; tries++)
            try {
                is_changed = run_once(connection, target, change, options) || is_changed;
                break;
            } catch (const ServerError& error) {
                /* Before the wait: after ROLLBACK TO the transaction still has the lock of the
                 * record, and another run would wait for it all the time. */
                connection.rollback();
                if (tries < options.tries && may_pass(error, options) && wait(tries))
                    continue;
                throw ServerError((change.name.empty() ? "" : "change " + change.name + ": ") +
                                      explained(error, target.rights),
                                  error.sqlstate);
            }
    return is_changed;
}
