/* The tables of a publication. */

#pragma once

#include <string>
#include <vector>

#include "base/shards.h"
#include "postgres/connection.h"

/* The shards' tables with rows, as SQL writes their names. */
inline std::vector<std::string> tables_of(Connection& connection, const Shards& shards)
{
    return texts_of(connection.query("SELECT oid::regclass FROM pg_class WHERE relnamespace = ANY "
                                     "($1::regnamespace[]) AND relkind = 'r' ORDER BY oid",
                                     {schemas_of(shards)}));
}

/* ONLY a, ONLY b: children are tables of their own, and those of others are left out. */
inline std::string only(const std::vector<std::string>& tables)
{
    return joined(tables, ", ", "ONLY ");
}

/* Conditions on pg_publication AS p, and on its pg_publication_rel: it is for all tables, of a
 * schema perhaps; it has not all rows (a WHERE) or columns of a table. */
inline const std::string kIsForAll =
    "(puballtables OR EXISTS (SELECT FROM pg_publication_namespace WHERE pnpubid = p.oid))";
inline const std::string kIsPartial = "(prqual IS NOT NULL OR prattrs IS NOT NULL)";
