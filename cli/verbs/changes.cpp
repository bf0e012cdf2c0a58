#include "verbs/changes.h"

#include <algorithm>
#include <filesystem>
#include <utility>

#include "base/files.h"

namespace
{

/* source: where it stands. Empty SQL would succeed in every shard, and be recorded as done. libpq
 * takes a C string, so the part behind a NUL byte would not run. */
std::string checked_sql(const std::string& sql, const std::string& source)
{
    if (sql.find_first_not_of(" \t\r\n;") == std::string::npos || sql.find('\0') < sql.size())
        throw UsageError("there is no SQL to run: " + source);
    return sql;
}

/* Names stand between quotes in the record, one in a line, and Record reads them back without an
 * SQL parser. A quote or a line break would end the name; a backslash is an escape if
 * standard_conforming_strings is off. All other bytes of UTF-8 are allowed. */
std::string checked_name(const std::string& name)
{
    const auto is_forbidden = [](char c) {
        return c == '\'' || c == '\\' || static_cast<unsigned char>(c) < ' ' || c == '\x7f';
    };
    if (name.empty() || std::any_of(name.begin(), name.end(), is_forbidden))
        throw UsageError("\"" + name +
                         "\" cannot be the name of a change: it is empty, or has a "
                         "quote, a backslash or a control character");
    return name;
}

/* As the tools that number files order them. Numbers by their value: V2__a.sql comes before
 * V10__a.sql. A version before those that continue it: V1__a.sql before V1.1__a.sql and
 * V1_1__a.sql. All else by its bytes, so that all machines agree. A number is written with the
 * number of its digits in front; a name has at most 255 bytes. */
std::string key_of(const std::string& name)
{
    std::string key;
    const std::size_t length = name.rfind(".sql");
    for (std::size_t i = 0; i < length;) {
        const std::size_t end = std::min(name.find_first_not_of("0123456789", i), length);
        if (end > i) {
            const std::size_t start = std::min(name.find_first_not_of('0', i), end);
            key += "0" + std::string(1, static_cast<char>(end - start)) +
                   name.substr(start, end - start);
            i = end;
        } else if (name.compare(i, 2, "__") == 0) {
            key += '\1';
            i += 2;
        } else {
            key += name[i++];
        }
    }
    return key;
}

/* Files that Flyway (U1__a.sql, R__a.sql) and golang-migrate (1_a.down.sql) do not run once, in the
 * order of their names. */
void require_versioned(const std::string& name)
{
    const bool is_undo = name.size() > 1 && name[0] == 'U' && name[1] >= '0' && name[1] <= '9' &&
                         name.find("__") != std::string::npos;
    const std::size_t down = name.rfind(".down.sql");
    const bool is_down = down != std::string::npos && down + 9 == name.size();
    if (is_undo || is_down)
        throw UsageError("file " + name +
                         " undoes a change by its name\nHINT:  Take such files out of the folder: "
                         "each of its files is run once, in the order of the names.");
    if (name.rfind("R__", 0) == 0)
        throw UsageError("file " + name +
                         " is repeatable by its name: to be run after all others, and again when "
                         "it has changed\nHINT:  Take it out of the folder, and run it with --file "
                         "after the others.");
}

/* Hidden files are those of editors. A file that is added later is made, too, also if files after
 * it are recorded already. */
std::vector<std::string> list_files(const std::string& folder)
{
    std::vector<std::string> names;
    std::error_code error;
    for (const auto& file : std::filesystem::directory_iterator(folder, error)) {
        const std::string name = file.path().filename().string();
        if (file.path().extension() != ".sql" || name[0] == '.')
            continue;
        require_versioned(name);
        names.push_back(name);
    }
    if (error)
        throw UsageError("cannot read folder " + folder + ": " + error.message());
    if (names.empty())
        throw UsageError("folder " + folder + " has no files *.sql");
    std::sort(names.begin(), names.end(), [](const std::string& one, const std::string& other) {
        return std::pair(key_of(one), one) < std::pair(key_of(other), other);
    });
    return names;
}

/* An error of the grammar is one of the shard, as every other error of the SQL. */
bool says(Connection& connection, const std::string& question, const Change& change, bool otherwise)
{
    try {
        return connection.query(question, {change.sql}).text(0, 0) == "t";
    } catch (const ServerError&) {
        if (!connection.is_alive())
            throw;
        return otherwise;
    }
}

} // namespace

std::string read_sql(const std::string& sql, const std::string& file, const std::string& source)
{
    return checked_sql(file.empty() ? sql : read_given_file(file), source);
}

std::vector<Change> read_changes(const RunOptions& options)
{
    if (options.no_transaction && (!options.once.empty() || !options.folder.empty()))
        throw UsageError("a change is recorded in the transaction that makes it, and "
                         "--no-transaction has none\nHINT:  Run it without --once. After an error, "
                         "DROP INDEX CONCURRENTLY IF EXISTS removes the index that a failed CREATE "
                         "INDEX CONCURRENTLY has left.");
    if (options.folder.empty())
        return {{options.once.empty() ? "" : checked_name(options.once),
                 read_sql(options.sql, options.file, "--sql, --file or --dir"), ""}};
    std::vector<Change> changes;
    for (const std::string& name : list_files(options.folder)) {
        const std::string path = options.folder + "/" + name;
        changes.push_back(
            {checked_name(name), checked_sql(read_given_file(path), "file " + path), ""});
    }
    return changes;
}

void check_statements(Connection& connection, const std::vector<Change>& changes,
                      const RunOptions& options)
{
    for (const Change& change : changes) {
        if (change.name.empty())
            continue;
        if (!says(connection, "SELECT snowflake_internal.has_statements($1)", change, true))
            throw UsageError("change " + change.name +
                             " has comments alone: it would be recorded, and nothing done"
                             "\nHINT:  Migration tools print this for a step that is no SQL. Write "
                             "the step in SQL, or leave it out and do it by a program.");
        if (!options.folder.empty() &&
            says(connection, "SELECT snowflake_internal.ends_transaction($1)", change, false))
            throw UsageError("change " + change.name + " begins or ends a transaction" +
                             kNoTransactionOfItsOwn);
    }
}

void add_hashes(Connection& connection, std::vector<Change>& changes)
{
    /* convert_to(): of the bytes in UTF-8, as the file has them, whatever the database's encoding
     * is. Else the same file would have another hash in a database of LATIN1. */
    for (Change& change : changes)
        if (!change.name.empty())
            change.hash =
                connection
                    .query("SELECT pg_catalog.encode(pg_catalog.sha256(pg_catalog.convert_to($1, "
                           "'UTF8')), 'hex')",
                           {change.sql})
                    .text(0, 0);
}
