#include "verbs/changes.h"

#include <algorithm>
#include <filesystem>

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

/* In the byte order of their names, so that all machines agree: 10_a.sql comes before 2_a.sql.
 * Hidden files are those of editors. A file that is added later is made, too, also if files after
 * it are recorded already. */
std::vector<std::string> list_files(const std::string& folder)
{
    std::vector<std::string> names;
    std::error_code error;
    for (const auto& file : std::filesystem::directory_iterator(folder, error)) {
        const std::string name = file.path().filename().string();
        if (file.path().extension() == ".sql" && name[0] != '.')
            names.push_back(name);
    }
    if (error)
        throw UsageError("cannot read folder " + folder + ": " + error.message());
    if (names.empty())
        throw UsageError("folder " + folder + " has no files *.sql");
    std::sort(names.begin(), names.end());
    return names;
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
                         "--no-transaction has none\nHINT:  Write a statement that can be run "
                         "again, such as CREATE INDEX CONCURRENTLY IF NOT EXISTS, without --once.");
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
