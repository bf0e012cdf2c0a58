/* snowflake-shard run: a change of the schema in every shard. */

#include <fstream>
#include <iostream>
#include <iterator>

#include "catalog.h"
#include "lexer.h"
#include "output.h"
#include "process.h"
#include "verbs.h"

namespace
{

const char* const kActiveTransaction = "25001";

std::string read_sql(const RunOptions& options)
{
    if (options.file.empty())
        return options.sql;
    std::ifstream file;
    if (options.file != "-") {
        file.open(options.file);
        if (!file)
            throw UsageError("cannot read file " + options.file);
    }
    std::istream& input = options.file == "-" ? std::cin : file;
    return {std::istreambuf_iterator<char>(input), std::istreambuf_iterator<char>()};
}

/* Statements that would end the transaction of a shard, and psql's own commands, are refused before
 * anything is run. ROLLBACK TO a savepoint is no end. */
void check_sql(const std::string& sql, const std::vector<std::string>& statements,
               bool no_transaction)
{
    for (const Token& token : tokens_of(sql))
        if (token.kind == TokenKind::meta)
            throw UsageError("psql commands are not understood: " + std::string(token.text));
    if (statements.empty())
        throw UsageError("there is no SQL to run");
    for (const std::string& statement : statements) {
        const std::string word = first_word(statement);
        const bool is_to_savepoint =
            word == "rollback" && lower(statement).find(" to ") != std::string::npos;
        if (no_transaction)
            continue;
        if (word == "begin" || word == "start" || word == "commit" || word == "end" ||
            word == "abort" || (word == "rollback" && !is_to_savepoint))
            throw UsageError("the SQL has a " + lower(word) +
                             " of its own: each shard's transaction is begun and ended by run");
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

void run_one(Connection& connection, const Shard& shard, const std::string& sql)
{
    connection.run("BEGIN");
    connection.run("SET LOCAL search_path = " + shard.quoted);
    connection.run(sql);
    connection.run("COMMIT");
}

/* Each statement commits by itself. */
void run_one_without_transaction(Connection& connection, const Shard& shard,
                                 const std::vector<std::string>& statements)
{
    connection.run("SET search_path = " + shard.quoted);
    for (const std::string& statement : statements)
        connection.run(statement);
}

struct Outcome {
    Table table = {{"shard", "schema", "state", "error"}, {}};
    ShardSet done;
    ShardSet failed;
    ShardSet not_done;

    void add(const Shard& shard, const std::string& state, ShardSet& set, const Cell& error = {})
    {
        table.rows.push_back({std::int64_t{shard.number}, shard.schema, state, error});
        set.insert(shard.number);
    }
};

void report(const Outcome& outcome, bool json)
{
    if (json)
        return print(outcome.table, Format::json);
    std::cout << count_of(outcome.done.size(), "shard") << " done: " << format_shards(outcome.done)
              << "\n";
    if (!outcome.failed.empty())
        std::cout << count_of(outcome.failed.size(), "shard")
                  << " failed: " << format_shards(outcome.failed) << "\n";
    if (!outcome.not_done.empty())
        std::cout << count_of(outcome.not_done.size(), "shard")
                  << " not done: " << format_shards(outcome.not_done) << "\n";
}

std::string explain(const ServerError& error, bool no_transaction)
{
    std::string text = error.what();
    if (error.sqlstate == kActiveTransaction && !no_transaction)
        text += "\nHINT:  It cannot run in a transaction: use --no-transaction.";
    return text;
}

} // namespace

int run_on_shards(const RunOptions& options)
{
    const std::string sql = read_sql(options);
    const std::vector<std::string> statements = split_statements(sql);
    check_sql(sql, statements, options.no_transaction);
    Connection connection(options.dsn);
    const std::vector<Shard> shards = choose_shards(connection, parse_shards(options.shards));

    Outcome outcome;
    Progress progress("run", shards.size());
    bool is_stopped = false;
    for (const Shard& shard : shards) {
        if (is_stopped || is_interrupted()) {
            outcome.add(shard, "not done", outcome.not_done);
            continue;
        }
        try {
            if (options.no_transaction)
                run_one_without_transaction(connection, shard, statements);
            else
                run_one(connection, shard, sql);
            outcome.add(shard, "done", outcome.done);
        } catch (const ServerError& error) {
            connection.rollback();
            const std::string text = explain(error, options.no_transaction);
            outcome.add(shard, "failed", outcome.failed, text);
            warn("shard " + std::to_string(shard.number) + ", schema " + shard.schema + ": " +
                 text);
            is_stopped = !options.keep_going || !connection.is_alive() ||
                         error.sqlstate == kActiveTransaction;
        }
        progress.step();
    }
    report(outcome, options.json);
    return outcome.failed.empty() && outcome.not_done.empty() ? kDone : kFailed;
}
