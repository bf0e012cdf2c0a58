/* The definition of the shard as it was copied. If it changes before the target is open, the target
 * has another one: a column that rounds, a table that is gone, a privilege that was revoked. */

#pragma once

#include "move/session.h"
#include "postgres/connection.h"
#include "postgres/dump.h"

/* A definition that the target can make: the archive, which is used in the copy if the fingerprint
 * is still the one that was computed before it. In a database of thousands of shards pg_dump takes
 * half a second. */
struct Tried {
    Tried(Connection& source, const Shards& shards);

    const std::string fingerprint;
    const Archive archive;
};

/* Creates the tables and functions of a fingerprint in the schema of the move, in a transaction of
 * the caller. */
void make_fingerprint(Connection& source, const Move& move);

/* The archive of a definition, with filled views, as the next two take it. */
Archive archive_of(Connection& source, const Move& move);

/* Notes the definition when it is copied, as pg_dump writes it. The archive was made after
 * note_fingerprint(). */
void note_definition(Connection& source, const Move& move, const Archive& archive);
/* As if it had been written since: a table was rewritten, and no catalogue tells so. */
void forget_definition(Connection& source, const Move& move);
/* Compares fingerprints since note_definition(): another pg_dump may write the same definition in
 * another way. */
bool is_untouched(Connection& source, const Move& move);
/* Compares it with the noted one. The error shows the difference. */
void require_same_definition(Connection& source, const Move& move, const Archive& archive);

/* Notes which transactions have written the definition, and returns it. It takes milliseconds,
 * where pg_dump takes tenths of a second, and may change where the definition does not: REINDEX
 * CONCURRENTLY. */
std::string note_fingerprint(Connection& source, const Move& move);
/* Notes the position in the WAL at which reverse replication begins. */
void note_position(Connection& source, const Move& move);
/* Anything but the fence has changed it since. */
bool has_changed(Connection& source, const Move& move);
/* Late if it has. */
void require_no_change(Connection& source, const Move& move);
