#include "verbs/gathered_rows.h"

#include <set>
#include <utility>

#include "base/quoting.h"
#include "postgres/cursor.h"
#include "postgres/row_text.h"
#include "postgres/sql_text.h"

namespace
{

/* Types that every server has under this OID, and whose text any server reads. Not those whose text
 * names an object of the server, nor those that cannot be read from text. OIDs from 10,000 on
 * differ between servers. -1: "bit" and bpchar without a length, where NULL gives one. */
const char* const kKnownTypes = R"(
SELECT oid, format_type(oid, -1) FROM pg_type
WHERE oid < 10000 AND typtype IN ('b', 'r', 'm') AND typnamespace = 'pg_catalog'::regnamespace
AND typname !~ '^_?(reg[a-z]+|aclitem|gtsvector|pg_node_tree|pg_ndistinct|pg_dependencies|pg_mcv_list|pg_brin_.*)$')";

std::string line_of(const Row& row)
{
    std::string line;
    for (const Value& value : row)
        line += (line.empty() ? "" : "\t") +
                (value.kind == Kind::null ? "\\N" : copy_value(value.text));
    return line + "\n";
}

/* The columns that a table may have, without the two of the shard. */
constexpr std::size_t kMaxColumns = 1600 - 2;

/* The server's error would not say which shard has them. */
void require_possible(const std::vector<Column>& columns)
{
    const std::set<std::string> kSystem = {"ctid", "xmin", "cmin", "xmax", "cmax", "tableoid"};
    for (const Column& column : columns)
        if (kSystem.count(column.name) > 0)
            throw Failure("the column " + column.name +
                          " has the name of a system column, which rows of --then cannot have"
                          "\nHINT:  Give it another name: AS ...");
    if (columns.size() > kMaxColumns)
        throw Failure("the query has " + std::to_string(columns.size()) +
                      " columns, and a table for --then takes " + std::to_string(kMaxColumns) +
                      "\nHINT:  Let the query return fewer, or put several into an array.");
}

/* A table of another kind can be made neither on a standby nor without the right. */
std::string then_error(const ServerError& error)
{
    const bool is_refused =
        error.sqlstate == kReadOnlyTransaction || error.sqlstate == kInsufficientPrivilege;
    return std::string("--then: ") + error.what() +
           (is_refused ? "\nHINT:  --at names another server for the temporary table." : "");
}

} // namespace

GatheredRows::GatheredRows(const std::string& dsn, const QueryOptions& options)
    : options_(options), server_(reach(dsn))
{
    const Result types = server_.connection.query(kKnownTypes);
    for (int i = 0; i < types.rows(); i++)
        known_[static_cast<unsigned int>(types.number(i, 0))] = types.text(i, 1);
}

GatheredRows::Types GatheredRows::types_of(const std::vector<Column>& columns) const
{
    Types types = {"integer", "text"};
    for (const Column& column : columns) {
        const auto found = known_.find(column.type);
        types.push_back(found == known_.end() ? "text" : found->second);
    }
    return types;
}

void GatheredRows::begin(const Shard& shard, const std::vector<Column>& columns)
{
    const std::vector<std::string> names = names_behind(kShardColumns, columns);
    const Types types = types_of(columns);
    const std::lock_guard<std::mutex> lock(lock_);
    if (!problem_.empty())
        throw ThenError(problem_);
    if (names_.empty()) {
        require_possible(columns);
        first_ = shard;
        make_table(names, types);
        return;
    }
    const auto listed = [](const std::vector<std::string>& some, const Types& of) {
        std::string text;
        for (std::size_t i = 2; i < some.size(); i++)
            text += (i == 2 ? "" : ", ") + visible(some[i]) + " " + of[i];
        return text;
    };
    if (names != names_ || types != types_)
        throw Failure("the columns are " + listed(names, types) + ", and in shard " +
                      std::to_string(first_.number) + " " + listed(names_, types_));
}

/* The path has no schema in which another role could plant a function that the query over the rows
 * would call. */
void GatheredRows::make_table(const std::vector<std::string>& names, const Types& types)
{
    Connection& connection = server_.connection;
    names_ = names;
    types_ = types;
    std::string columns;
    for (std::size_t i = 0; i < names.size(); i++)
        columns += (i == 0 ? "" : ", ") + connection.identifier(names[i]) + " " + types[i];
    try {
        connection.run("BEGIN ISOLATION LEVEL READ COMMITTED READ WRITE;" +
                       value_text_settings("SET LOCAL") +
                       "SET LOCAL search_path = pg_catalog, pg_temp;"
                       "SET LOCAL idle_in_transaction_session_timeout = 0;"
                       "SET LOCAL client_connection_check_interval = '500ms';"
                       "CREATE TEMPORARY TABLE rows (" +
                       columns + ") ON COMMIT DROP");
        try_query();
        connection.run("SET LOCAL statement_timeout = 0");
        copy_.emplace(connection, "COPY pg_temp.rows FROM STDIN");
    } catch (const ServerError& error) {
        problem_ = then_error(error);
        throw ThenError(problem_);
    }
}

/* Before the rows are read: a misspelt column is told at once. */
void GatheredRows::try_query()
{
    server_.connection.run("SAVEPOINT snowflake_then");
    server_.connection.query(declare());
    server_.connection.run("ROLLBACK TO snowflake_then");
}

std::string GatheredRows::declare() const
{
    return "DECLARE snowflake_then NO SCROLL CURSOR FOR\n" + options_.then;
}

void GatheredRows::add(std::size_t, std::vector<Row> rows)
{
    std::string lines;
    for (const Row& row : rows)
        lines += line_of(row);
    const std::lock_guard<std::mutex> lock(lock_);
    if (!problem_.empty())
        throw ThenError(problem_);
    try {
        copy_->put(lines);
    } catch (const ServerError& error) {
        problem_ = then_error(error);
        throw ThenError(problem_);
    }
}

/* The answer over some of the shards would be a wrong one. */
void GatheredRows::finish(bool is_complete)
{
    if (!is_complete)
        return;
    if (!copy_)
        throw Failure("there are no shards, and so no rows for --then");
    try {
        copy_->end();
        print_query();
    } catch (const ServerError& error) {
        throw ThenError(then_error(error));
    }
}

void GatheredRows::print_query()
{
    Connection& connection = server_.connection;
    connection.run(
        "ANALYZE pg_temp.rows; SET LOCAL cursor_tuple_fraction = 1;"
        "SET LOCAL statement_timeout = " +
        (options_.statement_timeout > 0 ? milliseconds_of(options_.statement_timeout) : "DEFAULT") +
        "; SET TRANSACTION READ ONLY");
    connection.query(declare());
    const std::vector<Column> columns = columns_of(connection.query("FETCH 0 FROM snowflake_then"));
    RowPrinter printer(format_of(options_.format, options_.json));
    /* Not before the first rows: the query can still fail, and then nothing is printed. */
    bool has_begun = false;
    const auto begin = [&] {
        if (!std::exchange(has_begun, true))
            printer.begin(names_behind({}, columns));
    };
    read_cursor(connection, fetch_from("snowflake_then"), columns,
                [&](const std::vector<Row>& rows) {
                    begin();
                    for (const Row& row : rows)
                        printer.print(row);
                });
    begin();
    printer.end();
}
