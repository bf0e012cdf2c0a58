#include "verbs/record.h"

#include <algorithm>
#include <sstream>

#include "base/timeouts.h"
#include "postgres/advisory.h"
#include "postgres/sql_text.h"

namespace
{

const std::string kHead = "\n"
                          "-- Written by snowflake-shard run: the changes that this shard has had, "
                          "with the SHA-256 of their SQL.\n"
                          "SELECT ARRAY[\n";
const std::string kEnd = "]::pg_catalog.text[]\n";

/* A function of another kind has no source: it is not a record. That of LANGUAGE sql with a body of
 * SQL-standard syntax (prosqlbody, since PostgreSQL 14) has an empty prosrc. '' is no source that
 * run has written, so such a function is an error and is not replaced. */
const std::string kSource = "CASE WHEN l.lanname = 'sql' AND p.prokind = 'f' AND p.prosqlbody IS "
                            "NULL THEN p.prosrc ELSE '' END";
/* Only the function without arguments: snowflake_changes(integer) is another function to
 * PostgreSQL, and CREATE OR REPLACE would leave it alone. */
const std::string kFunctions = R"(
pg_catalog.pg_proc AS p JOIN pg_catalog.pg_language AS l
    ON l.oid = p.prolang AND p.proname = 'snowflake_changes' AND p.pronargs = 0)";

} // namespace

Record::Record(const std::string& source)
{
    /* Dumps write prosrc unchanged, so the text of a clone or a moved shard is this one, byte for
     * byte. */
    const std::size_t size = kHead.size() + kEnd.size();
    is_readable_ = source.size() >= size && source.compare(0, kHead.size(), kHead) == 0 &&
                   source.compare(source.size() - kEnd.size(), kEnd.size(), kEnd) == 0;
    if (!is_readable_)
        return;
    std::istringstream lines(source.substr(kHead.size(), source.size() - size));
    for (std::string line; std::getline(lines, line);)
        is_readable_ = read_entry(line) && is_readable_;
}

/* As source() writes it. There may be hundreds in each of thousands of shards, so a line is
 * compared by its positions, without a regular expression. A line that was edited by hand makes the
 * record unreadable: a change that is not seen would be made a second time. */
bool Record::read_entry(const std::string& line)
{
    constexpr std::size_t kHashSize = 64;
    const std::string before = "    '";
    const std::size_t name_end = line.find('\'', before.size());
    if (line.compare(0, before.size(), before) != 0 || name_end == std::string::npos)
        return false;
    const std::size_t comment = name_end + 1 + (line.compare(name_end, 2, "',") == 0 ? 1 : 0);
    const std::size_t hash = comment + 4;
    if (line.compare(comment, 4, " -- ") != 0 || line.size() != hash + kHashSize ||
        line.find_first_not_of("0123456789abcdef", hash) != std::string::npos)
        return false;
    entries_.push_back({line.substr(before.size(), name_end - before.size()), line.substr(hash)});
    return true;
}

bool Record::has(const Change& change) const
{
    if (!is_readable_)
        throw Failure("function snowflake_changes() of its schema is no record that run has "
                      "written\nHINT:  Rename the function if it is yours.");
    const auto found = std::find_if(entries_.begin(), entries_.end(),
                                    [&](const Entry& entry) { return entry.name == change.name; });
    if (found == entries_.end())
        return false;
    /* To skip it would leave the shards with two definitions, and to run it again could fail or
     * double rows. Only the author knows which one is meant. */
    if (found->hash != change.hash)
        throw Failure(
            "it has had change " + change.name + " with another text: SHA-256 was " + found->hash +
            ", is " + change.hash +
            "\nHINT:  Restore the text, and write the new part as a change with a name of "
            "its own.");
    return true;
}

std::string Record::source() const
{
    std::string source = kHead;
    for (const Entry& entry : entries_)
        source += "    '" + entry.name + "'" + (&entry == &entries_.back() ? "" : ",") + " -- " +
                  entry.hash + "\n";
    return source + kEnd;
}

std::map<std::string, Record> read_records(Connection& connection)
{
    const Result rows =
        connection.query("SELECT p.pronamespace, " + kSource + " FROM " + kFunctions);
    std::map<std::string, Record> records;
    for (int i = 0; i < rows.rows(); i++)
        records.emplace(rows.text(i, 0), Record(rows.text(i, 1)));
    return records;
}

/* An advisory lock, because there may be no object yet to lock, and two sessions that replace one
 * function do not queue: the second fails with "tuple concurrently updated". Advisory locks are of
 * one database, where a schema's name is unique. It is released after the commit is visible, so the
 * next holder reads this record. If two names have one hash, two runs wait for each other without
 * need. Any role can take the lock, so no wait for it is without an end. */
void lock_record(Connection& connection, const Shard& shard, bool has_limit)
{
    const std::string name = "snowflake_changes " + shard.schema;
    if (!has_limit)
        connection.run("SET LOCAL lock_timeout = " + milliseconds_of(timeouts::kChangeLock));
    connection.run("SAVEPOINT snowflake_shard");
    try {
        connection.query("SELECT pg_catalog.pg_advisory_xact_lock(pg_catalog.hashtextextended($1, "
                         "0))",
                         {name});
    } catch (const ServerError& error) {
        if (error.sqlstate != kLockTimeout)
            throw;
        connection.run("ROLLBACK TO snowflake_shard");
        throw ServerError("another session has locked the record of changes of the shard, as a run "
                          "does" +
                              holders_of(connection, name),
                          error.sqlstate);
    }
    connection.run("RELEASE snowflake_shard");
    if (!has_limit)
        connection.run("SET LOCAL lock_timeout TO DEFAULT");
}

Record read_record(Connection& connection, const Shard& shard)
{
    /* LEFT JOIN: a shard without the function has an empty record. */
    const Result row = connection.query(
        "SELECT p.oid, " + kSource + " FROM pg_catalog.pg_namespace AS n LEFT JOIN (" + kFunctions +
            ") ON p.pronamespace = n.oid WHERE n.oid = $1::oid",
        {shard.oid});
    /* It was dropped after prepare() had read the shards. */
    if (row.rows() == 0)
        throw Failure("its schema is gone");
    return row.is_null(0, 0) ? Record() : Record(row.text(0, 1));
}

/* Not CREATE FUNCTION: the second change finds the record of the first. REPLACE keeps the owner and
 * the privileges. */
std::string writing_of(Connection& connection, const Shard& shard, const Record& record)
{
    return "SET LOCAL check_function_bodies = off; CREATE OR REPLACE FUNCTION " + shard.quoted +
           ".snowflake_changes() RETURNS pg_catalog.text[] LANGUAGE sql IMMUTABLE AS " +
           connection.literal(record.source());
}
