/* Rows and their keys as text that is the same on both servers if the rows are. */

#pragma once

#include <string>

#include "postgres/connection.h"

/* Only these settings of a session decide how a row is written as text. */
void set_row_text(Connection& connection);

/* The columns of the primary key; empty if there is none. Text is ordered by its bytes, because the
 * collations of two servers may differ. */
std::string key_of(Connection& connection, const std::string& table);
