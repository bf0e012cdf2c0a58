/*
 * A session of another role, for the backend that asks: its process (worker.cpp) was never anybody
 * else's. A backend has one at a time. It lasts until another role's takes its place or the backend
 * ends; until the caller's transaction ends, if it is in one; and until an error of the backend,
 * such as a cancel, while a request is under way.
 *
 * The two are two sessions to PostgreSQL's locks, and a wait of one for the other is a deadlock
 * that it does not see. So the caller holds nothing that the session could wait for: no transaction
 * ID (55000), no lock but those of reading the catalogue, and a snapshot only where PostgreSQL
 * needs one.
 */
#pragma once

#include "channel.h"

namespace snowflake::session
{

/* The messages of an answer; each may be null. */
struct Answer {
    void (*columns)(StringInfo message, void* state); /* RowDescription */
    void (*row)(StringInfo message, void* state);     /* DataRow */
    void* state;
};

/*
 * A new session of the role, or one that is as new (DISCARD ALL). The caller has asked whether
 * there may be one.
 *
 *   53000   no background worker is free
 *   55000   the caller has written in its transaction
 */
void begin(Oid role);

/* The beginning of a request; see channel.h. */
StringInfoData request_of(Kind kind);
void append_text(StringInfo request, const char* added);

/* Sends a request, and takes the answer. The error of the session becomes one of the caller, and
 * the session is still there. 08006 if it has ended. rest: follows the request, and is not copied.
 */
void ask(const StringInfoData& request, const char* sql = "", const Answer& answer = {},
         const shm_mq_iovec& rest = {});
void ask(Kind kind, const char* sql, const Answer& answer = {});

/* Whether the session is in a transaction that has not failed. */
bool is_in_transaction();

} // namespace snowflake::session
