/* The changes that run makes: SQL from the command line, from a file, or from the files of a
 * folder. */

#pragma once

#include <string>
#include <vector>

#include "postgres/connection.h"
#include "verbs/verbs.h"

struct Change {
    std::string name; /* under which a shard records it; empty: it is not recorded */
    std::string sql;
    std::string hash; /* SHA-256 of the SQL in hexadecimal, as sha256sum prints it */
};

inline constexpr const char* kNoTransactionOfItsOwn =
    "\nHINT:  run begins and ends the transaction of each shard: remove BEGIN, COMMIT and ROLLBACK "
    "from the SQL.";

/* In the order in which they are made. Without hashes, because no server is connected yet: wrong
 * usage is told before that. Either all have names, or there is one without. A UsageError if a file
 * cannot be read, has no SQL, or has a name that cannot be recorded. */
std::vector<Change> read_changes(const RunOptions& options);

/* SQL of the command line, or else of the file. source: the options, for the UsageError if there is
 * no SQL. */
std::string read_sql(const std::string& sql, const std::string& file, const std::string& source);

/* UsageError for a change that would be recorded and has comments alone, and for a file of a folder
 * that begins or ends a transaction: other files of it would be done in some shards already. */
void check_statements(Connection& connection, const std::vector<Change>& changes,
                      const RunOptions& options);

/* Gives a hash to each change with a name. The server computes it, with sha256() of PostgreSQL, so
 * the command needs no library for it. Any server gives the same result. */
void add_hashes(Connection& connection, std::vector<Change>& changes);
