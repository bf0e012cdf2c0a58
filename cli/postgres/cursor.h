/* The rows of a cursor, in batches that memory can hold. */

#pragma once

#include <functional>
#include <string>
#include <vector>

#include "postgres/connection.h"
#include "postgres/values.h"

/* All rows, a batch of some megabytes at a time; a row that is larger comes alone. take() may wait:
 * this counts for statement_timeout only if the rows become wider all at once. */
void read_cursor(Connection& connection, const std::string& cursor,
                 const std::vector<Column>& columns,
                 const std::function<void(std::vector<Row> rows)>& take);
