#include "split/standby.h"

#include <thread>

#include "base/interrupt.h"
#include "base/output.h"
#include "base/timeouts.h"
#include "cutover/lag.h"
#include "cutover/opening.h"
#include "cutover/waiting.h"
#include "postgres/sql_text.h"
#include "split/session.h"

namespace
{

/* The postmaster reads the files, and passes it on to its children: a session that has the new
 * value was told by it, and so later sessions have it. Our own has set another value, so reset_val
 * is read: the value of a session that sets nothing. Another place can have a value that takes
 * precedence: that does not end by waiting. */
void await_setting(Connection& standby, const std::string& value)
{
    const std::string sql =
        "SELECT reset_val FROM pg_settings WHERE name = 'default_transaction_read_only'";
    standby.query("SELECT pg_reload_conf()");
    const Clock::time_point deadline = Clock::now() + timeouts::kReload;
    while (standby.query(sql).text(0, 0) != value) {
        if (Clock::now() > deadline) {
            const ReadOnly setting = read_only_of(standby);
            throw Late(standby.server() + " still has default_transaction_read_only = " +
                       setting.value + " after " + std::to_string(timeouts::kReload.count()) +
                       " s, from " + setting.origin + "\nHINT:  " + setting.remedy);
        }
        std::this_thread::sleep_for(std::chrono::milliseconds(1));
    }
}

const std::string kSlots = R"(
    SELECT slot_name, plugin, two_phase FROM pg_replication_slots
    WHERE slot_type = 'logical' AND NOT temporary AND database = current_database() AND slot_name !~ '^(snowflake_|pg_[0-9]+_sync_|pg_repack_[0-9])' ORDER BY 1)";

} // namespace

/* ALTER SYSTEM is allowed in recovery, because it writes a file and no WAL. It is not allowed in a
 * transaction block. */
void make_read_only(Connection& standby)
{
    standby.run("ALTER SYSTEM SET default_transaction_read_only = on");
    await_setting(standby, "on");
}

void make_writable(Connection& standby)
{
    standby.run("ALTER SYSTEM RESET default_transaction_read_only");
    await_setting(standby, "off");
}

/* The standby is asked later, and can have replayed more than that by then: greatest(). */
std::int64_t lag_of(Connection& old, Connection& standby)
{
    const std::string lsn = old.query("SELECT pg_current_wal_lsn()").text(0, 0);
    return standby
        .query("SELECT greatest(pg_wal_lsn_diff($1, pg_last_wal_replay_lsn()), 0)::bigint", {lsn})
        .number(0, 0);
}

/* The old server can have removed the WAL that the standby needs: that is told in its log alone. */
void await_lag_of_standby(Connection& old, Connection& standby, Clock::duration max_lag)
{
    bool is_told = false;
    Lag measured(max_lag);
    Wait wait([&] {
        return standby.query("SELECT FROM pg_stat_wal_receiver").rows() > 0
                   ? ""
                   : standby.server() + " receives no WAL; its log says why. It tries again.";
    });
    for (;;) {
        stop_if_interrupted();
        const std::int64_t lag = lag_of(old, standby);
        const Result replayed =
            standby.query("SELECT pg_wal_lsn_diff(pg_last_wal_replay_lsn(), '0/0')::bigint");
        if (measured.is_small(lag, replayed.number(0, 0)))
            return;
        if (!is_told)
            warn("standby: waiting, it is behind by " + pretty_size(lag));
        is_told = true;
        wait.tell();
        std::this_thread::sleep_for(std::chrono::milliseconds(100));
    }
}

/* Asks the standby each millisecond, because writes are blocked meanwhile. A Watch of the caller
 * ends a query that hangs. */
void await_seal(Connection& standby, const std::string& seal, Clock::time_point deadline)
{
    bool has_record = false; /* it may have replayed nothing of the split yet */
    const auto has_seal = [&] {
        has_record = has_record ||
                     !standby.query("SELECT to_regclass('snowflake_split.state')").is_null(0, 0);
        return has_record &&
               standby.query("SELECT FROM snowflake_split.state WHERE seal = $1::uuid", {seal})
                       .rows() > 0;
    };
    while (!has_seal()) {
        if (Clock::now() > deadline)
            throw Late("the standby did not replay the last write in time");
        std::this_thread::sleep_for(std::chrono::milliseconds(1));
    }
}

/* pg_promote(false) does not wait: with true it would look ten times a second, and clients would
 * wait for that. If it was requested before, a second request changes nothing. */
void promote(Connection& standby, Clock::time_point deadline)
{
    const Watch watch(standby, late_at(standby, deadline));
    if (is_in_recovery(standby))
        standby.query("SELECT pg_promote(false)");
    while (is_in_recovery(standby)) {
        if (Clock::now() > deadline)
            throw Late(standby.server() + " is still in recovery");
        std::this_thread::sleep_for(std::chrono::milliseconds(1));
    }
}

std::vector<std::string> logical_slots(Connection& old)
{
    return texts_of(old.query(kSlots));
}

std::vector<std::string> plugins_of_slots(Connection& old)
{
    return texts_of(old.query("SELECT DISTINCT plugin FROM (" + kSlots + ") AS s ORDER BY 1"));
}

/* Clients wait meanwhile, so the time is limited. A slot waits for transactions that have written;
 * since the promotion there is none. */
void make_slots(Connection& old, Connection& promoted)
{
    const Result slots = old.query(kSlots);
    for (int i = 0; i < slots.rows(); i++) {
        try {
            promoted.run("BEGIN; SET LOCAL statement_timeout = " +
                         milliseconds_of(timeouts::kSlot));
            promoted.query(R"(
                SELECT pg_create_logical_replication_slot($1, $2, false, $3)
                WHERE NOT EXISTS (SELECT FROM pg_replication_slots WHERE slot_name = $1))",
                           {slots.text(i, 0), slots.text(i, 1), slots.text(i, 2)});
            promoted.run("COMMIT");
        } catch (const ServerError& error) {
            promoted.rollback();
            warn("slot " + slots.text(i, 0) + " is not made on " + promoted.server() +
                 ", so its reader can miss changes there: " + error.what());
        }
    }
}
