#include "move/fingerprint.h"

#include <algorithm>
#include <iterator>
#include <sstream>

#include "definition/entries.h"
#include "definition/fingerprint.h"
#include "cutover/cutover.h"
#include "postgres/trust.h"

namespace
{

std::vector<std::string> read_definition(Connection& source, const Move& move,
                                         const Archive& archive)
{
    std::vector<std::string> definition;
    for (const auto& [schema, entries] :
         split_dump(source, schemas_in(move.shards), archive.text()))
        for (const Entry& entry : entries)
            definition.push_back(entry.sql);
    /* Sorted here and not by ORDER BY: std::set_difference() compares bytes, a
     * server by its collation. */
    std::sort(definition.begin(), definition.end());
    return definition;
}

std::string marked_lines(const std::string& mark, const std::vector<std::string>& statements)
{
    std::string text;
    for (const std::string& statement : statements) {
        std::istringstream lines(statement);
        for (std::string line; std::getline(lines, line);)
            if (!line.empty())
                text += "\n" + mark + line;
    }
    return text;
}

Result ask_fingerprint(Connection& source, const Move& move, const std::string& sql)
{
    return while_doing(kFingerprinting, [&] { return source.query(move.sql(sql)); });
}

} // namespace

/* The tables exist already on a server that was the source of a move before: --undo --reversible
 * prepares reverse replication there. */
void make_fingerprint(Connection& source, const Move& move)
{
    source.run(move.sql(R"(
        DROP TABLE IF EXISTS @move@.definition, @move@.noted;
        CREATE TABLE @move@.definition (sql text NOT NULL);
        CREATE TABLE @move@.noted (fingerprint text, at pg_lsn, of_definition text);
        ALTER TABLE @move@.noted REPLICA IDENTITY FULL;
        INSERT INTO @move@.noted DEFAULT VALUES;
        CREATE OR REPLACE FUNCTION @move@.fingerprint() RETURNS text LANGUAGE plpgsql
            SET search_path = '' SET plan_cache_mode = force_generic_plan AS $$)" +
                        fingerprint_body(
                            "ARRAY(SELECT n.oid FROM pg_namespace AS n JOIN @move@.shards AS s "
                            "ON s.schema_name = n.nspname)",
                            "@move@", "RETURN fingerprint") +
                        "$$; REVOKE EXECUTE ON FUNCTION @move@.fingerprint() FROM PUBLIC;") +
               keeping_to_owner(move.name));
}

Tried::Tried(Connection& source, const Shards& shards)
    : fingerprint(fingerprint_of(source, shards, "")), archive(source, schemas_in(shards))
{
}

Archive archive_of(Connection& source, const Move& move)
{
    return {source, schemas_in(move.shards)};
}

void note_definition(Connection& source, const Move& move, const Archive& archive)
{
    /* One transaction: after a kill the table has all of a definition. A part of one would read as
     * a change. */
    source.run(move.sql("BEGIN; TRUNCATE @move@.definition; "
                        "UPDATE @move@.noted SET of_definition = fingerprint"));
    source.query(move.sql("INSERT INTO @move@.definition SELECT unnest($1::text[])"),
                 {sql_array(read_definition(source, move, archive))});
    source.run("COMMIT");
}

void forget_definition(Connection& source, const Move& move)
{
    source.run(move.sql("UPDATE @move@.noted SET of_definition = NULL"));
}

bool is_untouched(Connection& source, const Move& move)
{
    return ask_fingerprint(source, move,
                           "SELECT coalesce(of_definition = @move@.fingerprint(), false) "
                           "FROM @move@.noted")
        .flag(0, 0);
}

void require_same_definition(Connection& source, const Move& move, const Archive& archive)
{
    std::vector<std::string> noted =
        texts_of(source.query(move.sql("SELECT sql FROM @move@.definition")));
    std::sort(noted.begin(), noted.end());
    const std::vector<std::string> present = read_definition(source, move, archive);
    std::vector<std::string> gone;
    std::vector<std::string> added;
    std::set_difference(noted.begin(), noted.end(), present.begin(), present.end(),
                        std::back_inserter(gone));
    std::set_difference(present.begin(), present.end(), noted.begin(), noted.end(),
                        std::back_inserter(added));
    const std::string difference = marked_lines("- ", gone) + marked_lines("+ ", added);
    if (!difference.empty())
        throw MustStartAnew("the definition has changed since it was copied", difference);
}

std::string note_fingerprint(Connection& source, const Move& move)
{
    return ask_fingerprint(
               source, move,
               "UPDATE @move@.noted SET fingerprint = @move@.fingerprint() RETURNING fingerprint")
        .text(0, 0);
}

void note_position(Connection& source, const Move& move)
{
    /* The insert position, not the written one: an apply worker commits with synchronous_commit =
     * off by default (subsynccommit), so its last commits may not be written yet. Reverse
     * replication begins at this position, and must not send these rows back. */
    source.run(move.sql("UPDATE @move@.noted SET at = pg_current_wal_insert_lsn()"));
}

bool has_changed(Connection& source, const Move& move)
{
    /* NULL if no fingerprint was noted: that counts as a change. */
    return !ask_fingerprint(source, move,
                            "SELECT fingerprint = @move@.fingerprint() FROM @move@.noted")
                .flag(0, 0);
}

void require_no_change(Connection& source, const Move& move)
{
    /* The error is Late and not MustStartAnew, because the fingerprint can change where the
     * definition does not. The next try of the cutover compares the dumps, and these decide. */
    if (has_changed(source, move))
        throw Late("the definition of the shard is being changed");
}
