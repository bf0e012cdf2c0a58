/*
 * What a user reads when something cannot be done: the object, the numbers, and the statement that
 * mends it. The functions that don't return raise an error of the SQLSTATE beside them.
 */
#pragma once

#include "legacy_body.h"
#include "sequence_page.h"

namespace snowflake::errors
{

[[noreturn]] void shard_out_of_range(std::int32_t shard);       /* 22003 */
[[noreturn]] void counter_out_of_range(std::int32_t counter);   /* 22003 */
[[noreturn]] void not_an_id(Id id);                             /* 22003 */
[[noreturn]] void negative_count(std::int32_t count);           /* 22003 */
[[noreturn]] void shard_unset();                                /* 55000 */
[[noreturn]] void timestamp_out_of_range(Age age, Epoch epoch); /* 22008 */
[[noreturn]] void infinite_time();                              /* 22008 */
[[noreturn]] void before_epoch(UnixMs time, Epoch epoch);       /* 22008 */
[[noreturn]] void past_last_ms(UnixMs time, Epoch epoch);       /* 2200H */
[[noreturn]] void nothing_follows(Id past, Epoch epoch);        /* 2200H */

[[noreturn]] void shard_count_out_of_range(std::int32_t shards); /* 22003 */
/* 42710; the object (of pg_class or pg_proc) stands in `schema` */
[[noreturn]] void shard_in_use(std::int32_t shard, Oid catalog, Oid object, const char* schema);

[[noreturn]] void no_such_function(Oid function); /* 42883 */
/* 42P13 */
[[noreturn]] void unreadable_function(Oid function, const legacy::Reading& reading);

[[noreturn]] void no_such_sequence(Oid relation);      /* 42P01 */
[[noreturn]] void no_default_sequence(Oid schema);     /* 42P01 */
[[noreturn]] void not_a_sequence(Oid relation);        /* 42809 */
[[noreturn]] void permission_denied(Oid sequence);     /* 42501 */
[[noreturn]] void cannot_hold_positions(Oid sequence); /* 55000 */

/* For every verdict but `issue` and `pace`: 55000, 22008 or 2200H. */
[[noreturn]] void no_position(Oid sequence, const PageResult& result, Epoch epoch);

void warn_far_ahead(Oid sequence, std::int64_t lead, Position position);

} // namespace snowflake::errors
