/* The standby of a split: its replay, its promotion, and the time until it is opened. */

#pragma once

#include <string>

#include "clock.h"
#include "postgres/connection.h"

/* Between its promotion and its opening nobody can write there, and nobody can draw: ALTER SYSTEM
 * SET default_transaction_read_only, beforehand. Returns when its sessions have the setting. A
 * session that sets it otherwise meets the fence if it writes to a shard, see fence.cpp. It
 * can still draw an ID without a row. */
void make_read_only(Connection& standby);
void make_writable(Connection& standby);

/* Bytes of WAL that the standby has not replayed. */
std::int64_t lag_of(Connection& old, Connection& standby);
/* Returns when it is this small. Ctrl-C ends the wait. */
void await_lag_of_standby(Connection& old, Connection& standby, std::int64_t max_lag);

/* Returns when the standby has replayed the commit with this seal, and all WAL before it. */
void await_seal(Connection& standby, const std::string& seal, Clock::time_point deadline);

/* Requests the promotion, and returns when the server is a standby no more. */
void promote(Connection& standby, Clock::time_point deadline);
