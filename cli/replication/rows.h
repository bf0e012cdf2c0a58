/* The rows of tables, which the command copies from one server to the other. */

#pragma once

#include <map>
#include <string>
#include <vector>

#include "postgres/connection.h"

/* OIDs of the tables on the target, by their names as SQL writes them. */
using MadeTables = std::map<std::string, std::string>;

/* tables: an array of SQL with their OIDs on the source; made: the target's empty tables of the
 * same names and columns. Their rows under the exported snapshot, by so many connections to each
 * server, the largest table first. Each table is one transaction on the target.
 *
 * The rows are written by snowflake_internal.copy_rows(), with the rights of the table's owner; the
 * triggers of the table fire as in an apply worker. An error names the table and the row, and ends
 * the copy.
 *
 * Returns the tables of which nothing was copied, because their rows are newer than the snapshot:
 * by TRUNCATE, which the slot sends, or by a statement that rewrites the table, which it does not
 * send: ALTER TABLE, REPACK (CONCURRENTLY). VACUUM FULL keeps the versions of rows. */
std::vector<std::string> copy_rows(Connection& source, Connection& target,
                                   const std::string& tables, const MadeTables& made,
                                   const std::string& snapshot, int jobs);

/* tables: an array of SQL with their OIDs or names. In a session in REPEATABLE READ: the first
 * table that has another file now than under its snapshot, as SQL writes its name; empty if there
 * is none. */
std::string find_rewritten(Connection& snapshot, const std::string& tables);
