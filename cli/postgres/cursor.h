/* The rows of a cursor, in batches that memory can hold. */

#pragma once

#include <functional>
#include <string>
#include <vector>

#include "postgres/connection.h"
#include "postgres/values.h"

/* The statement that fetches so many of the next rows. */
using Fetch = std::function<std::string(std::size_t count)>;
Fetch fetch_from(const std::string& cursor);

/* All rows, a batch of some megabytes at a time; a row that is larger comes alone. take() may wait:
 * this counts for statement_timeout only if the rows become wider all at once. */
void read_cursor(Connection& connection, const Fetch& fetch, const std::vector<Column>& columns,
                 const std::function<void(std::vector<Row> rows)>& take);
