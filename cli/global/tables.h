/* Global tables: the same rows on all servers, written on one of them, the writer. The others, the
 * followers, subscribe to its publication. This is about the tables of one server. */

#pragma once

#include <algorithm>
#include <functional>
#include <string>
#include <vector>

#include "postgres/connection.h"
#include "postgres/obstacles.h"

using Names = std::vector<std::string>;

inline bool has(const Names& names, const std::string& name)
{
    return std::find(names.begin(), names.end(), name) != names.end();
}

/* lock_and_run_naming() for a change of few tables: for 10 s at most. */
void lock_and_change(Connection& connection, const std::function<void()>& change);

/* The publication on the writer; on a follower the schema and the trigger that refuses writes. The
 * names of subscriptions and slots begin with it. */
inline const std::string kGlobal = "snowflake_global";

/* schema.table as SQL writes it, in one way for each table: names are compared as text. UsageError
 * for anything else, also for a name without a schema: which table that is depends on settings. */
std::string table_name(Connection& connection, const std::string& given);

/* Reads with the connection, or in its session what the transaction there has changed. */
struct Reader {
    Reader(Connection& reading, bool in_session = false)
        : connection(reading), is_in_session(in_session)
    {
    }
    Result query(const std::string& sql, const std::vector<std::string>& parameters) const;

    Connection& connection;
    bool is_in_session;
};

/* An ordinary table of this name is there. */
bool has_table(const Reader& reader, const std::string& table);

/* Whether the table has rows. They are read with the rights of its owner, because this role may
 * lack the right to count them. */
bool has_rows(Connection& connection, const std::string& table);

/* Why a table cannot be published: it is missing, of another kind, without a key, or in a shard. */
Obstacles find_unpublishable(const Reader& writer, const std::string& table);

/* An object that only one of two tables has, or that differs. The hint has the statements for the
 * follower. */
struct TableDifference {
    std::string object; /* column name, index public.filters_name */
    std::string problem;
    std::string hint;
    bool is_missing_column; /* rows cannot be compared then */
};

/* Columns with type, collation, NOT NULL and generated values; constraints; indexes. Both servers
 * have the table. */
std::vector<TableDifference> compare_definitions(const Reader& writer, const Reader& follower,
                                                 const std::string& table);

/* Objects and rights that the owners of the tables need on the follower. */
Obstacles find_unmakable(Connection& writer, Connection& follower, const Names& tables);

/* Makes the tables with their indexes, constraints and triggers, as the writer has them, in
 * sessions of their owners. A Failure if there is such an obstacle. */
void make_tables(Connection& writer, Connection& follower, const Names& tables);
