/* Shards of superusers. */

#pragma once

#include "base/shards.h"
#include "postgres/connection.h"

/* Warns in one line if some of these belong to superusers: code in them has all rights. */
void tell_of_superusers_shards(Connection& connection, const Shards& shards);
/* The same for verbs of every day: on a terminal, where somebody reads it. */
void tell_reader_of_superusers_shards(Connection& connection, const Shards& shards);
