/* Tables that the role may not read, or not all rows of. */

#pragma once

#include <string>

#include "postgres/connection.h"
#include "sql/sql.h"

/* The HINT of a line of its own behind an error of SQLSTATE 42501: rights that the role lacks, and
 * who is subject to no policy. Empty if neither is the reason. tables: an array of OIDs. The
 * connection is in no transaction that failed. */
inline std::string hint_for_unread(Connection& connection, const std::string& tables,
                                   bool reads_rows = true)
{
    const Result remedy =
        connection.query(rights_to_read_sql, {tables, reads_rows ? "true" : "false"});
    return remedy.is_null(0, 0) ? "" : "\nHINT:  " + visible(remedy.text(0, 0));
}
