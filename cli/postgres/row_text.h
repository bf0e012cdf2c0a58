/* Rows and their keys as text that is the same on both servers if the rows are. */

#pragma once

#include <string>

#include "postgres/connection.h"

/* Settings that decide how values are written, so that each server reads them as they were. set:
 * SET or SET LOCAL. TimeZone is not among them: it changes the meaning of a query, and a time is
 * written with its offset. */
std::string value_text_settings(const std::string& set);

/* Only these settings of a session decide how a row is written as text. */
void set_row_text(Connection& connection);

/* The expression of a row of the table, with the alias t, as text. By the names of the columns: a
 * restored table that inherits can have them in another order, and t::text would be the column t
 * where there is one. */
std::string row_text_of(Connection& connection, const std::string& table);

/* The columns of the primary key; empty if there is none. Text is ordered by its bytes, because the
 * collations of two servers may differ. */
std::string key_of(Connection& connection, const std::string& table);

/* The same columns: their names; as text, under these names; and with their types. No names if a
 * type is not PostgreSQL's own: its name can lead to a type of another role by now. */
struct KeyColumns {
    std::string names;
    std::string texts;
    std::string types;
};
KeyColumns key_columns_of(Connection& connection, const std::string& table);

/* The rows of a query of this table, all values as text, in a session of the table's owner: the
 * planner and the casts of a row call functions that the owner chose. The query reads no relation
 * of another role (42501), and names no type that another role could have made. */
Result read_rows(Connection& connection, const std::string& table, const std::string& sql,
                 int columns);
