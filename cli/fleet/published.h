/* The records of moves and splits are tables, and so a publication FOR ALL TABLES sends their rows.
 */

#pragma once

#include "postgres/obstacles.h"

/* Such publications of others, if a slot may read them. A subscription fails at a table that its
 * server lacks, and tries again for ever. The server of the slot does not tell whether a
 * subscription reads it or a program that ignores the table: --trust-readers says it. */
Obstacles find_published_records(Connection& connection);
