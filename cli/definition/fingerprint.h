/* A fingerprint of the definition of shards, from the catalogue: sql/fingerprint.sql. It takes
 * milliseconds, where pg_dump takes tenths of a second. It may change where the definition does
 * not: REINDEX CONCURRENTLY. */

#pragma once

#include <string>

#include "base/shards.h"
#include "postgres/connection.h"

/* For while_doing(). */
inline const char* const kFingerprinting = "the fingerprint of the definition was computed";

/* The body of a PL/pgSQL function or of DO. schemas: an expression, an array of OIDs. record: the
 * schema of the fence that may have changed the bounds of sequences, or empty. result: a statement
 * that takes the variable fingerprint. */
std::string fingerprint_body(const std::string& schemas, const std::string& record,
                             const std::string& result);

/* As the snapshot of the transaction shows the shards. Two servers have equal fingerprints only if
 * one is a physical copy of the other: it has OIDs and transaction IDs in it. */
std::string fingerprint_of(Connection& connection, const Shards& shards, const std::string& record);
