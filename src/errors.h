/*
 * Common parts of error messages: names, dates and numbers as text, and the errors that several
 * parts raise. All other errors stand where their condition is decided.
 */
#pragma once

#include "pg.h"
#include "rule/layout.h"

namespace snowflake::errors
{

/* Schema-qualified and quoted, so that it can be pasted into a statement. */
const char* name_of(Oid relation);
const char* name_of_role(Oid role); /* quoted */

/* 42809; 42501 if a policy may hide rows from the role, also with row_security = off. */
void require_ordinary_table(Relation relation);
void require_all_rows(Oid table, Oid role = GetUserId());

/* The owner; 42P01 or 3F000 if there is no such object. That of the schema public is
 * pg_database_owner, a role that owns nothing else: its only member, the owner of the database,
 * stands for it. */
Oid owner_of_table(Oid table);
Oid owner_of_schema(Oid schema);
void require_owner(Oid table); /* 42501 */

/* Why something is refused, and the statement that mends it; null if it is not. */
struct Problem {
    const char* message;
    const char* hint;
};
Problem may_not_become(Oid role);          /* whether this role may act as the other */
void require_none(const Problem& problem); /* 42501 */

/* In UTC, as the layout is defined; the number itself where PostgreSQL has no such date. */
const char* date_of(UnixMs time);

constexpr long long number(std::int64_t value)
{
    return value;
}

[[noreturn]] void shard_out_of_range(std::int32_t shard);                 /* 22003 */
[[noreturn]] void before_epoch(UnixMs time, Epoch epoch);                 /* 22008 */
[[noreturn]] void past_last_ms(UnixMs time, Epoch epoch, UnixMs last_ms); /* 2200H */

} // namespace snowflake::errors
