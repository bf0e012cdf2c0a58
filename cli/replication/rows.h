/* The rows of tables, which the command copies from one server to the other. */

#pragma once

#include <string>

#include "postgres/connection.h"

/* tables: an array of SQL with their OIDs on the source; the target has empty tables of the same
 * names and columns. Their rows under the exported snapshot, by so many connections to each server,
 * the largest table first. Each table is one transaction on the target.
 *
 * The rows are written by snowflake_internal.copy_rows(), with the rights of the table's owner; the
 * triggers of the table fire as in an apply worker. An error names the table and the row, and ends
 * the copy.
 *
 * Returns the first table that has another file now than under the snapshot, as SQL writes its
 * name; empty if there is none. A VACUUM FULL or TRUNCATE has made it, which do no harm. Or an
 * ALTER TABLE, which makes the rows invisible in earlier snapshots: then they are lost. */
std::string copy_rows(Connection& source, Connection& target, const std::string& tables,
                      const std::string& snapshot, int jobs);
