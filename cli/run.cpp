/* snowflake-shard run: a change of the schema in every shard. */

#include <fstream>
#include <iostream>
#include <iterator>

#include "catalog.h"
#include "interrupt.h"
#include "output.h"
#include "verbs.h"

namespace
{

std::string read_sql(const Options& options)
{
    std::string sql = options.sql;
    if (!options.file.empty()) {
        std::ifstream file(options.file);
        if (options.file != "-" && !file)
            throw UsageError("cannot read file " + options.file);
        std::istream& input = options.file == "-" ? std::cin : file;
        sql.assign(std::istreambuf_iterator<char>(input), std::istreambuf_iterator<char>());
    }
    if (sql.find_first_not_of(" \t\r\n;") == std::string::npos || sql.find('\0') < sql.size())
        throw UsageError("there is no SQL to run: --sql or --file");
    return sql;
}

/* The savepoint is gone if the SQL has ended the transaction. */
void leave_savepoint(Connection& connection, const std::string& command)
{
    try {
        connection.run(command + " SAVEPOINT snowflake_shard");
    } catch (const ServerError&) {
        if (!connection.is_alive())
            throw;
        throw Failure("the SQL ended its transaction itself, and can have changed a part of the "
                      "shard.\nHINT:  run begins and ends the transaction of each shard: remove "
                      "BEGIN, COMMIT and ROLLBACK from the SQL.");
    }
}

void run_in_transaction(Connection& connection, const Shard& shard, const std::string& sql)
{
    connection.run("BEGIN; SET LOCAL search_path = " + shard.quoted +
                   "; SAVEPOINT snowflake_shard");
    try {
        connection.run(sql);
    } catch (const ServerError& error) {
        if (connection.is_alive())
            leave_savepoint(connection, "ROLLBACK TO");
        throw;
    }
    leave_savepoint(connection, "RELEASE");
    connection.run("COMMIT");
}

/* An error that is no ServerError would be that of every shard. */
void run_one(Connection& connection, const Shard& shard, const std::string& sql,
             bool no_transaction)
{
    const std::string active_transaction = "25001";
    try {
        if (!no_transaction)
            return run_in_transaction(connection, shard, sql);
        connection.run("SET search_path = " + shard.quoted);
        connection.run(sql);
        if (connection.is_in_transaction())
            throw Failure("the SQL left a transaction open: it is rolled back.");
    } catch (const ServerError& error) {
        if (error.sqlstate != active_transaction)
            throw;
        throw Failure(error.what() + std::string("\nHINT:  ") +
                      (no_transaction ? "--no-transaction takes one statement."
                                      : "It cannot run in a transaction: use --no-transaction."));
    }
}

std::vector<ShardState> run_all(Connection& connection, const std::vector<Shard>& shards,
                                const std::string& sql, const Options& options)
{
    std::vector<ShardState> states;
    Progress progress("run", shards.size());
    bool is_stopped = false;
    for (const Shard& shard : shards) {
        states.push_back({shard, "not done", ""});
        if (is_stopped || is_interrupted())
            continue;
        try {
            run_one(connection, shard, sql, options.no_transaction);
            states.back().state = "done";
        } catch (const Failure& error) {
            connection.rollback();
            states.back() = {shard, "failed", error.what()};
            const bool is_of_shard = dynamic_cast<const ServerError*>(&error) != nullptr;
            is_stopped = !is_of_shard || !options.keep_going || !connection.is_alive();
        }
        progress.step();
    }
    return states;
}

} // namespace

int run_on_shards(const Options& options)
{
    const std::string sql = read_sql(options);
    Connection connection(options.dsn);
    const std::vector<Shard> shards = choose_shards(connection, options.shards);
    /* The run ends after the shard that it is at, so that it can say which are done. */
    note_interrupts();
    return print_states(run_all(connection, shards, sql, options), options.json);
}
