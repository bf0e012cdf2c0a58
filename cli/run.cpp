/* snowflake-shard run: a change of the schema in every shard. */

#include <csignal>
#include <fstream>
#include <iostream>
#include <iterator>

#include "catalog.h"
#include "lexer.h"
#include "output.h"
#include "verbs.h"

namespace
{

const char* const kActiveTransaction = "25001"; /* SQLSTATE of what cannot run in a transaction */

/* Ctrl-C ends the run after the shard that it is at, so that it can be said which are done. A
 * second one ends the program. */
volatile std::sig_atomic_t interrupted = 0;

void note_interrupt(int signal)
{
    interrupted = 1;
    std::signal(signal, SIG_DFL);
}

std::string read_sql(const Options& options)
{
    if (options.file.empty() && options.sql.empty())
        throw UsageError("run needs SQL: --sql or --file");
    if (options.file.empty())
        return options.sql;
    std::ifstream file(options.file);
    if (options.file != "-" && !file)
        throw UsageError("cannot read file " + options.file);
    std::istream& input = options.file == "-" ? std::cin : file;
    return {std::istreambuf_iterator<char>(input), std::istreambuf_iterator<char>()};
}

/* Refuses psql's own commands, and statements that would end the transaction of a shard. */
void check_sql(const std::string& sql, bool no_transaction)
{
    if (sql.find('\0') != std::string::npos || split_statements(sql).empty())
        throw UsageError("there is no SQL to run");
    for (const std::string& statement : split_statements(sql)) {
        std::vector<std::string> words;
        for (const Token& token : tokens_of(statement)) {
            if (token.text[0] == '\\')
                throw UsageError("psql commands are not understood: " + std::string(token.text));
            if (token.kind != TokenKind::blank)
                words.push_back(lower(token.text));
        }
        const bool is_end = words[0] == "begin" || words[0] == "start" || words[0] == "commit" ||
                            words[0] == "end" || words[0] == "abort" || words[0] == "rollback";
        const bool is_to_savepoint = words[0] == "rollback" && words.size() > 2;
        if (is_end && !is_to_savepoint && !no_transaction)
            throw UsageError("the SQL has a " + words[0] +
                             " of its own: run begins and ends the transaction of each shard");
    }
}

/* The shards of the server that are meant. */
std::vector<Shard> choose_shards(Connection& connection, const ShardSet& wanted)
{
    std::vector<Shard> chosen;
    ShardSet missing = wanted;
    for (const Shard& shard : read_shards(connection))
        if (wanted.count(shard.number) > 0) {
            chosen.push_back(shard);
            missing.erase(shard.number);
        }
    if (chosen.empty())
        throw Failure("none of these shards is on " + connection.server());
    if (!missing.empty())
        warn("not on " + connection.server() + ": " + format_shards(missing));
    return chosen;
}

void run_one(Connection& connection, const Shard& shard, const std::string& sql,
             bool no_transaction)
{
    const std::string search_path = "search_path = " + shard.quoted;
    if (!no_transaction) {
        connection.run("BEGIN; SET LOCAL " + search_path);
        connection.run(sql);
        connection.run("COMMIT");
        return;
    }
    connection.run("SET " + search_path);
    for (const std::string& statement : split_statements(sql))
        connection.run(statement);
}

std::vector<ShardState> run_all(Connection& connection, const std::vector<Shard>& shards,
                                const std::string& sql, const Options& options)
{
    std::vector<ShardState> states;
    Progress progress("run", shards.size());
    bool is_stopped = false;
    for (const Shard& shard : shards) {
        is_stopped = is_stopped || interrupted != 0;
        ShardState state = {shard, is_stopped ? "not done" : "done", ""};
        try {
            if (!is_stopped)
                run_one(connection, shard, sql, options.no_transaction);
        } catch (const ServerError& error) {
            connection.rollback();
            const bool needs_option =
                error.sqlstate == kActiveTransaction && !options.no_transaction;
            state.state = "failed";
            state.error =
                error.what() +
                std::string(needs_option
                                ? "\nHINT:  It cannot run in a transaction: use --no-transaction."
                                : "");
            is_stopped = !options.keep_going || !connection.is_alive() || needs_option;
        }
        states.push_back(state);
        progress.step();
    }
    return states;
}

} // namespace

int run_on_shards(const Options& options)
{
    const std::string sql = read_sql(options);
    check_sql(sql, options.no_transaction);
    Connection connection(options.dsn);
    const std::vector<Shard> shards = choose_shards(connection, parse_shards(options.shards));
    std::signal(SIGINT, note_interrupt);
    return print_states(run_all(connection, shards, sql, options), options.json);
}
