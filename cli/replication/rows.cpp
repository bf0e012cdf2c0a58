#include "replication/rows.h"

#include <algorithm>
#include <atomic>
#include <memory>
#include <mutex>
#include <set>
#include <string_view>
#include <utility>

#include "base/output.h"
#include "postgres/copy_out.h"
#include "postgres/parallel.h"
#include "postgres/row_text.h"
#include "postgres/settings.h"
#include "sql/sql.h"

namespace
{

/* A target inserts a piece while the next one is read. Each COPY makes up to 1,000 slots for rows
 * (CopyMultiInsertInfoNextFreeSlot()), so that pieces of 1 MB take 1.14 times. Larger ones gain
 * nothing. */
constexpr std::size_t kPiece = 4 << 20;

/* A statement and its parameters have to fit into MaxAllocSize, 1 GB. */
constexpr std::size_t kLargestPiece = 1023 << 20;

/* The header of the binary format, without flags and extensions. */
constexpr std::string_view kHeader("PGCOPY\n\377\r\n\0\0\0\0\0\0\0\0\0", 19);
constexpr std::string_view kTrailer("\377\377", 2);

struct CopiedTable {
    std::string name;
    std::string list;    /* of its columns, as SQL writes them; generated ones are left out */
    std::string columns; /* the same as an array */
    bool is_binary;
    std::size_t size;
    std::string source_oid;
    std::string file; /* under the snapshot */
    std::string oid;  /* on the target */

    std::string format() const { return is_binary ? "binary" : "text"; }
    std::string copy_out() const
    {
        return "COPY " + name + (list.empty() ? "" : " (" + list + ")") + " TO STDOUT (FORMAT " +
               format() + ")";
    }
};

/* COPY finds its table by the name, and the owner of two schemas can exchange their names. COPY has
 * locked the table before it sends the first row, so the locks of the session show which it is. */
class Origin
{
public:
    /* tables: an array of OIDs. One question at a time, by all copying sessions. */
    Origin(Connection& connection, const std::string& tables) : connection_(connection)
    {
        for (const std::string& table :
             texts_of(connection.query("SELECT unnest($1::oid[])", {tables})))
            tables_.insert(table);
    }

    /* Returns whether its file is another one than under the snapshot, and has rows. */
    bool require_own(const Connection& copying, const CopiedTable& table)
    {
        const std::lock_guard<std::mutex> lock(mutex_);
        const Result locked = connection_.query(
            R"(
            SELECT c.oid, c.oid::regclass, c.oid = $2::oid AND relfilenode <> $3::oid AND pg_relation_size(c.oid) > 0
            FROM pg_locks JOIN pg_class AS c ON c.oid = relation
            WHERE pid = $1 AND locktype = 'relation' AND relkind = 'r' AND c.oid >= 16384
            AND database = (SELECT oid FROM pg_database WHERE datname = current_database()))",
            {std::to_string(copying.process_id()), table.source_oid, table.file});
        bool is_other = false;
        for (int i = 0; i < locked.rows(); i++) {
            is_other = is_other || locked.flag(i, 2);
            if (tables_.count(locked.text(i, 0)) == 0)
                throw Failure("the name of table " + visible(table.name) +
                              " led to a table of no shard that moves: " +
                              visible(locked.text(i, 1)) + ". No row of it was copied");
        }
        return is_other;
    }

    void add_rewritten(const std::string& table)
    {
        const std::lock_guard<std::mutex> lock(mutex_);
        warn("source: table " + visible(table) +
             " was emptied or rewritten before its rows were copied, as by TRUNCATE, pg_repack or "
             "REPACK (CONCURRENTLY). None of them was copied, so all rows are compared before the "
             "cutover");
        rewritten_.push_back(table);
    }
    const std::vector<std::string>& rewritten() const { return rewritten_; }

private:
    Connection& connection_;
    std::set<std::string> tables_;
    std::vector<std::string> rewritten_;
    std::mutex mutex_;
};

/* Rows of a table, in a format of COPY. */
struct Piece {
    std::string bytes;
    std::size_t before = 0; /* rows of the table in earlier pieces */
    std::size_t rows = 0;

    /* The first message of the binary format has the header, and the last one is the trailer: no
     * row begins with these bytes. */
    static std::string_view without_frame(std::string_view row)
    {
        row.remove_prefix(row.substr(0, kHeader.size()) == kHeader ? kHeader.size() : 0);
        return row == kTrailer ? std::string_view() : row;
    }
    bool has_room(std::string_view row) const
    {
        return bytes.empty() || bytes.size() + row.size() <= kPiece;
    }
    void add(std::string_view row)
    {
        bytes += row;
        rows++;
    }
};

/* A connection to each server. All copying sessions read and write names and values in one way:
 * that of pg_dump, without a conversion of text. */
class Job
{
public:
    Job(Connection& source, Connection& target, const std::string& snapshot)
        : source_(source.dsn_of_server()), target_(target.dsn_of_server())
    {
        for (Connection* const connection : {&source_, &target_}) {
            withstand_settings(*connection);
            connection->run(
                value_text_settings("SET") +
                "SET array_nulls = on; SET xmloption = content; SET client_encoding = " +
                connection->literal(source.encoding()));
        }
        /* Parameters would be logged by log_min_duration_statement, and they are rows. A commit
         * need not be flushed: the transaction that makes the rest of the definition is, and with
         * it all WAL before it. If the target crashes earlier, the copy begins again. A custom plan
         * would copy the rows twice. */
        target_.run(R"(
            SET synchronous_commit = off;
            SET plan_cache_mode = force_generic_plan;
            SELECT set_config(name, '0', false) FROM pg_settings
            WHERE name IN ('log_parameter_max_length', 'auto_explain.log_parameter_max_length')
            AND (context <> 'superuser' OR has_parameter_privilege(name, 'SET')))");
        /* The name under which a move of other shards knows this long transaction. */
        source_.run("SET application_name = 'snowflake-shard copy'; BEGIN ISOLATION LEVEL "
                    "REPEATABLE READ READ ONLY; SET TRANSACTION SNAPSHOT " +
                    source_.literal(snapshot));
    }

    std::vector<CopiedTable> read_tables(const std::string& oids, const MadeTables& made);

    template <typename Check>
    void copy(const std::vector<CopiedTable>& tables, std::atomic<std::size_t>& next,
              Origin& origin, Progress& progress, const Check& check)
    {
        const Watch on_source(source_, check);
        const Watch on_target(target_, check);
        for (std::size_t i = next++; i < tables.size(); i = next++)
            copy(tables[i], origin, progress);
        await_insert();
    }

private:
    void copy(const CopiedTable& table, Origin& origin, Progress& progress);
    void insert(const CopiedTable& table, Piece& piece, bool is_last);
    void await_insert();

    Connection source_;
    Connection target_;
    SentQuery insert_{target_};
    /* The table of the piece that is being inserted, and its rows before it. */
    const CopiedTable* table_ = nullptr;
    std::size_t rows_before_ = 0;
};

/* A table keeps its OID on the target, so that a session of a killed command, which does its last
 * statement late, cannot write to a table of the next one. */
std::vector<CopiedTable> Job::read_tables(const std::string& oids, const MadeTables& made)
{
    const Result rows = source_.query(copied_tables_sql, {oids});
    std::vector<CopiedTable> tables;
    for (int i = 0; i < rows.rows(); i++) {
        const auto found = made.find(rows.text(i, 0));
        if (found == made.end())
            throw Failure("table " + visible(rows.text(i, 0)) + " was made or renamed meanwhile");
        tables.push_back({rows.text(i, 0), rows.text(i, 1), rows.text(i, 2), rows.flag(i, 3),
                          static_cast<std::size_t>(rows.number(i, 4)), rows.text(i, 5),
                          rows.text(i, 6), found->second});
    }
    return tables;
}

/* The savepoint releases the lock on the table: an ALTER TABLE need not wait for other tables. */
void Job::copy(const CopiedTable& table, Origin& origin, Progress& progress)
{
    source_.run("SAVEPOINT snowflake_copy");
    CopyOut copy(source_, table.copy_out());
    const bool is_rewritten = origin.require_own(source_, table);
    std::size_t left = table.size; /* for the progress */
    Piece piece;
    for (std::string_view message; copy.next(message);) {
        const std::string_view row = Piece::without_frame(message);
        if (row.empty())
            continue;
        if (!piece.has_room(row)) {
            const std::size_t done = std::min(left, piece.bytes.size());
            insert(table, piece, false);
            progress.add(done);
            left -= done;
        }
        piece.add(row);
    }
    /* VACUUM FULL keeps the versions of rows, so that the snapshot sees some. */
    if (is_rewritten && piece.before + piece.rows == 0)
        origin.add_rewritten(table.name);
    insert(table, piece, true);
    progress.add(left);
    source_.run("ROLLBACK TO snowflake_copy");
}

/* A table of one piece is a transaction without a BEGIN, and is inserted while the next table is
 * read. The session that inserts the rows has a transaction of its own. */
void Job::insert(const CopiedTable& table, Piece& piece, bool is_last)
{
    await_insert();
    const bool is_in_block = target_.is_in_transaction();
    if (piece.rows > 0) {
        if (piece.bytes.size() > kLargestPiece)
            throw Failure("table " + visible(table.name) + ", row " +
                          std::to_string(piece.before + 1) +
                          ": it has more than 1 GB, and cannot be copied in one statement");
        if (!is_last && !is_in_block)
            target_.run("BEGIN");
        if (table.is_binary)
            piece.bytes.insert(0, kHeader).append(kTrailer);
        table_ = &table;
        rows_before_ = piece.before;
        insert_.send("SELECT snowflake_internal.copy_rows($1::regclass, $2::text[], $3, $4::bytea)",
                     {table.oid, table.columns, table.format()}, piece.bytes);
        piece.bytes.clear();
        piece.before += std::exchange(piece.rows, 0);
    }
    if (is_last && is_in_block) {
        await_insert();
        target_.run("SELECT snowflake_internal.session_run('COMMIT'); COMMIT");
    }
}

/* CONTEXT:  COPY users, line 5: the number is that of a row of the piece. */
void Job::await_insert()
{
    try {
        insert_.finish();
    } catch (const ServerError& error) {
        std::string text = error.what();
        const std::string mark = ", line ";
        const std::size_t at = text.find(mark, text.find("CONTEXT:"));
        if (at != std::string::npos) {
            const std::size_t begin = at + mark.size();
            const std::size_t length = text.find_first_not_of("0123456789", begin) - begin;
            const std::size_t line = std::stoull(text.substr(begin, length));
            text.replace(begin, length, std::to_string(rows_before_ + line));
        }
        throw ServerError("table " + visible(table_->name) + ": " + text, error.sqlstate);
    }
}

} // namespace

std::vector<std::string> copy_rows(Connection& source, Connection& target,
                                   const std::string& tables, const MadeTables& made,
                                   const std::string& snapshot, int jobs)
{
    std::vector<std::unique_ptr<Job>> sessions;
    for (int i = 0; i < jobs; i++)
        sessions.push_back(std::make_unique<Job>(source, target, snapshot));
    const std::vector<CopiedTable> found = sessions.front()->read_tables(tables, made);
    Origin origin(source, tables);
    std::size_t total = 0;
    for (const CopiedTable& table : found)
        total += table.size;
    Progress progress("copy", total, true);
    std::atomic<std::size_t> next = 0;
    all_or_none(sessions.size(), [&](std::size_t i, const auto& check) {
        sessions[i]->copy(found, next, origin, progress, check);
    });
    return origin.rewritten();
}

/* The row of pg_class is that of the snapshot, and the function's result that of this moment. */
std::string find_rewritten(Connection& snapshot, const std::string& tables)
{
    const Result rewritten = snapshot.query(
        "SELECT oid::regclass FROM pg_class WHERE oid = ANY ($1::regclass[]::oid[]) "
        "AND relfilenode IS DISTINCT FROM pg_relation_filenode(oid) AND relfilenode <> 0 LIMIT 1",
        {tables});
    return rewritten.rows() == 0 ? "" : rewritten.text(0, 0);
}
