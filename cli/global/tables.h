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

/* A change of global run that is on the writer, and was not seen on all followers. It is the
 * comment on the publication, written in the transaction of the change. The comment on the
 * subscription of a follower that has it begins with the same ID, and is written in the transaction
 * there. */
struct PendingChange {
    std::string id{}; /* empty: there is none */
    std::string sql{};
};
/* The text of such a comment, and its parts. */
std::string comment_of(const PendingChange& change);
PendingChange change_of(const std::string& comment);

/* schema.table as SQL writes it, in one way for each table: names are compared as text. UsageError
 * for anything else, also for a name without a schema: which table that is depends on settings. */
std::string table_name(Connection& connection, const std::string& given);

/* An ordinary table of this name is there. */
bool has_table(Connection& connection, const std::string& table);

/* Whether the table has rows. They are read with the rights of its owner, because this role may
 * lack the right to count them. */
bool has_rows(Connection& connection, const std::string& table);

/* Why a table cannot be published: it is missing, of another kind, without a key, or in a shard. */
Obstacles find_unpublishable(Connection& writer, const std::string& table);

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
std::vector<TableDifference> compare_definitions(Connection& writer, Connection& follower,
                                                 const std::string& table);

/* Objects and rights that the owners of the tables need on the follower. */
Obstacles find_unmakable(Connection& writer, Connection& follower, const Names& tables);

/* Makes the tables with their indexes, constraints and triggers, as the writer has them, in
 * sessions of their owners. A Failure if there is such an obstacle. */
void make_tables(Connection& writer, Connection& follower, const Names& tables);

/* ACCESS SHARE, which keeps the owner and the schema. A name can lead to another table by then: a
 * Failure, as if one was dropped. tables: their OIDs, an array of SQL, as they were when the
 * command began. In a transaction of the caller. */
void lock_tables(Connection& connection, const std::string& tables);
/* The role with whose rights SQL changes these tables: others' code in them must not get the rights
 * of the caller, so it is their owner. A role that may not act as the owner has its own, as in the
 * verb run. Failure if they belong to several. lock_tables() has locked them. */
std::string choose_role(Connection& connection, const std::string& tables);
/* SQL names a table by its schema, whose owner can give the name to another schema, with a table
 * and code of his own. Failure if that owner is neither the role that runs the SQL nor one that the
 * command trusts. lock_tables() has locked them. */
void require_kept_names(Connection& connection, const std::string& tables, const std::string& role);
/* Statements, in a transaction of the caller. In a security-restricted operation also if it is the
 * role of the caller, so that they cannot end the transaction. Names need their schema: search_path
 * is empty. */
void run_as(Connection& connection, const std::string& role, const std::string& sql);
