#include "verbs/apply.h"

#include <algorithm>
#include <chrono>
#include <thread>

#include "interrupt.h"
#include "verbs/record.h"
#include "postgres/sql_text.h"

namespace
{

/* The savepoint is gone if the SQL has ended the transaction. */
void leave_savepoint(Connection& connection, const std::string& command)
{
    try {
        connection.run(command + " SAVEPOINT snowflake_shard");
    } catch (const ServerError&) {
        if (!connection.is_alive())
            throw;
        throw WrongForAll("the SQL ended its transaction itself, and can have changed a part of "
                          "the shard.\nHINT:  run begins and ends the transaction of each shard: "
                          "remove BEGIN, COMMIT and ROLLBACK from the SQL.");
    }
}

/* The server may have committed before the connection was lost, so "failed" would be a guess. */
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

/* READ COMMITTED, so that the record that is read under the lock is the last one. */
std::string beginning_of(Connection& connection, const Shard& shard, const Change& change,
                         const Options& options)
{
    const bool is_recorded = !change.name.empty();
    std::string sql = is_recorded ? "BEGIN ISOLATION LEVEL READ COMMITTED" : "BEGIN";
    sql += "; SET LOCAL search_path = " + shard.quoted;
    if (options.lock_timeout > 0)
        sql += "; SET LOCAL lock_timeout = " + milliseconds_of(options.lock_timeout);
    if (is_recorded)
        sql += "; " + locking_of(connection, shard);
    return sql + "; SAVEPOINT snowflake_shard";
}

bool run_in_transaction(Connection& connection, const Shard& shard, const Change& change,
                        const Options& options)
{
    connection.run(beginning_of(connection, shard, change, options));
    OwnedRecord record;
    if (!change.name.empty()) {
        record = read_record(connection, shard);
        if (record.record.has(change)) {
            connection.rollback();
            return false;
        }
        record.record.add(change);
    }
    try {
        connection.run(change.sql);
    } catch (const ServerError& error) {
        if (connection.is_alive())
            leave_savepoint(connection, "ROLLBACK TO");
        throw;
    }
    leave_savepoint(connection, "RELEASE");
    if (!change.name.empty())
        /* In the same transaction as the change: a crash keeps both or none. */
        connection.run("SET LOCAL check_function_bodies = off; " +
                       writing_of(connection, shard, record));
    commit(connection);
    return true;
}

void run_alone(Connection& connection, const Shard& shard, const Change& change,
               const Options& options)
{
    connection.run("SET search_path = " + shard.quoted);
    if (options.lock_timeout > 0)
        connection.run("SET lock_timeout = " + milliseconds_of(options.lock_timeout));
    try {
        connection.run(change.sql);
    } catch (const ServerError& error) {
        if (connection.is_alive())
            throw;
        throw UnknownOutcome(std::string("the connection was lost: ") + error.what());
    }
    if (connection.is_in_transaction())
        throw WrongForAll("the SQL left a transaction open: it is rolled back.");
}

/* An error of SQLSTATE 25001 would be that of every shard. */
bool run_once(Connection& connection, const Shard& shard, const Change& change,
              const Options& options)
{
    const std::string active_transaction = "25001";
    try {
        if (!options.no_transaction)
            return run_in_transaction(connection, shard, change, options);
        run_alone(connection, shard, change, options);
        return true;
    } catch (const ServerError& error) {
        if (error.sqlstate != active_transaction)
            throw;
        throw WrongForAll(error.what() + std::string("\nHINT:  ") +
                          (options.no_transaction
                               ? "--no-transaction takes one statement."
                               : "It cannot run in a transaction: use --no-transaction."));
    }
}

/* Others were in the way. Outside of a transaction a statement that failed can have left something,
 * as CREATE INDEX CONCURRENTLY does, so it is not tried again. */
bool may_pass(const ServerError& error, const Options& options)
{
    const std::set<std::string> kPassing = {"55P03", "40P01", "40001"};
    return !options.no_transaction && kPassing.count(error.sqlstate) > 0;
}

/* Between tries the wait grows from 100 ms to 10 s. Returns false after Ctrl-C. */
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
           const Options& options)
{
    bool is_changed = false;
    for (const Change& change : changes)
        for (int tries = 1;; tries++)
            try {
                is_changed = run_once(connection, shard, change, options) || is_changed;
                break;
            } catch (const ServerError& error) {
                connection.rollback();
                if (tries < options.tries && may_pass(error, options) && wait(tries))
                    continue;
                throw ServerError((change.name.empty() ? "" : "change " + change.name + ": ") +
                                      error.what(),
                                  error.sqlstate);
            }
    return is_changed;
}
