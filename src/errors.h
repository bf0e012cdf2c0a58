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
