/* How long the command waits where no option says so. A time of polling stands beside its loop. */

#pragma once

#include <chrono>

namespace timeouts
{

using std::chrono::milliseconds;
using std::chrono::minutes;
using std::chrono::seconds;

/* One wait for a lock; other sessions queue behind ours. If the lock is not had, there are more
 * tries until a deadline. */
constexpr milliseconds kOneLock(1000);
/* The same in a trial, which nobody waits for. */
constexpr milliseconds kTrialLock(100);
/* All tries for a lock on a table, where the command holds another lock or a transaction. */
constexpr seconds kTableLock(10);
/* The same where it holds none, so that only the command waits. */
constexpr minutes kPatientLock(1);
/* To read a table that another session has locked: it is left out after that. */
constexpr seconds kReadLock(10);
/* The record of changes of a shard: another run holds it during one change. Any role can take the
 * lock. */
constexpr minutes kChangeLock(1);
/* The lock of a command on a shard or a server. Two moves in opposite directions wait for each
 * other until then. */
constexpr seconds kCommandLock(5);
/* The same of a copy, which is there for some seconds. */
constexpr minutes kCopyLock(1);

/* A follower that lags, before its rows are compared or its tables are locked. */
constexpr seconds kCatchUp(60);
/* The same while the writer's table is locked. */
constexpr seconds kLockedCatchUp(10);
/* The end of a slot's reader: a walsender that the subscriber has left. */
constexpr seconds kSlotReader(5);
/* The same of global tables, where the server of the reader is another one. */
constexpr seconds kGlobalSlotReader(10);
/* A worker that has ended is started again after wal_retrieve_retry_interval, by default 5 s. */
constexpr seconds kWorkerRestart(8);
/* To make a logical slot, which waits for the transactions that are running; on a server that was
 * promoted just now there are none. */
constexpr seconds kSlot(2);

/* Opening shards, at least: with a thousand of them it takes longer than a short --timeout, and
 * they would stay closed. */
constexpr seconds kOpening(60);
/* An expression of the application over 100 rows. */
constexpr seconds kExpression(10);
/* The search for rows that violate keys to another schema, per side. */
constexpr seconds kKeys(30);

/* PgBouncer answers every command but PAUSE at once, so one that is silent for so long hangs. */
constexpr seconds kPooler(5);
/* A file of PgBouncer on another host; clients are held while it is replaced. */
constexpr seconds kPoolerFile(10);
/* A reload takes milliseconds. */
constexpr seconds kReload(5);
/* To find out whether an address leads to a server. */
constexpr seconds kAddress(5);
/* The answer to a cancel request: a server that hangs delays the end of the command by so much. */
constexpr seconds kCancel(1);
/* A second session, which only tells why the first one waits: to connect, and its answer. */
constexpr seconds kObserver(2);
constexpr seconds kObserverAnswer(1);

} // namespace timeouts
