/* The standby of a split: its replay, its promotion, and the time until it is opened. */

#pragma once

#include <string>
#include <vector>

#include "base/clock.h"
#include "postgres/connection.h"

/* Between its promotion and its opening nobody can write there, and nobody can draw: ALTER SYSTEM
 * SET default_transaction_read_only, beforehand. Returns when its sessions have the setting. A
 * session that sets it otherwise meets the fence if it writes to a shard, see fence.cpp. It
 * can still draw an ID without a row.
 *
 * Both are Late if a setting elsewhere prevails; the error says where it is. */
void make_read_only(Connection& standby);
/* RESET removes the line of ALTER SYSTEM. A value in postgresql.conf is in force again, which must
 * not be "on": obstacles.cpp looks. */
void make_writable(Connection& standby);

/* Bytes of WAL that the standby has not replayed, of the WAL that the old server has written by
 * now. Never negative. */
std::int64_t lag_of(Connection& old, Connection& standby);
/* Returns when it is this small. Ctrl-C ends the wait. */
void await_lag_of_standby(Connection& old, Connection& standby, Clock::duration max_lag);

/* Returns when the standby has replayed the commit with this seal, and all WAL before it. Late if
 * it has not by the deadline. */
void await_seal(Connection& standby, const std::string& seal, Clock::time_point deadline);

/* Requests the promotion, and returns when the server is a standby no more. If it is promoted
 * already, nothing is requested. Late if it is in recovery at the deadline: the promotion may come
 * nevertheless. */
void promote(Connection& standby, Clock::time_point deadline);

/* Names of the logical slots of this database, but for those of global tables, and of a table's
 * copy. */
std::vector<std::string> logical_slots(Connection& old);
std::vector<std::string> plugins_of_slots(Connection& old);
/* Each of them on the promoted server, too, if it is not there: it begins here, so nothing may have
 * been written yet. One that cannot be made is told, because the split can only go on. */
void make_slots(Connection& old, Connection& promoted);
