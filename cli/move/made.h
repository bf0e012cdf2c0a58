/* The schemas and tables that the command has made on the target, by OID: their owner can exchange
 * the names of two schemas while the rows are copied. */

#pragma once

#include <string>

#include "move/session.h"
#include "replication/rows.h"

struct Made {
    std::string names;   /* of the schemas, an array of SQL */
    std::string schemas; /* their OIDs, in the same order */
    MadeTables tables;
};

/* In the transaction that makes the schemas: until its COMMIT nobody else can rename them. They are
 * empty. */
Made read_made(Connection& target, const Move& move);
MadeTables read_tables(Connection& target, const Made& made);

/* lock_schemas(); a Failure if a name leads to another schema. */
void lock_made(Connection& target, const Made& made);
