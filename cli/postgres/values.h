/* Rows of a server as the command prints them. */

#pragma once

#include <string>
#include <vector>

#include "base/table.h"
#include "postgres/connection.h"

/* type: its OID; that of a domain is its base type, so a domain over bigint is a number, too. */
struct Column {
    std::string name;
    unsigned int type;
};

std::vector<Column> columns_of(const Result& result);

/* The columns can have other types than those of the result, whose values are all text then. */
Row row_of(const Result& result, int row, const std::vector<Column>& columns);

/* All rows, with the types of the result. */
void add_rows(Table& table, const Result& result);
