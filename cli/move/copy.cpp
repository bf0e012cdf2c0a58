#include "move/command.h"

#include <algorithm>
#include <map>

#include "base/output.h"
#include "cutover/lag.h"
#include "move/fence.h"
#include "move/fingerprint.h"
#include "move/indexes.h"
#include "move/replication.h"
#include "move/state.h"
#include "replication/publication.h"
#include "postgres/dump.h"
#include "postgres/restore.h"
#include "postgres/settings.h"

namespace
{

/* The part of the definition that the target gets first, to be run as a whole in a transaction of
 * the caller: the objects that rows need, which are tables, and the indexes by which the apply
 * worker finds rows. */
std::string definition_before_rows(Connection& source, const Move& move, const Archive& archive)
{
    return archive.sql(archive.items(Archive::Section::pre_data)) +
           archive.sql(keys_before_rows(source, move, archive));
}

/* Megabytes of the rows of tables, without indexes and TOAST: for the progress alone. */
class CopiedSize
{
public:
    explicit CopiedSize(Connection& source, const Move& move)
    {
        const Result rows = source.query(R"(
            SELECT oid::regclass, pg_relation_size(oid)
            FROM pg_class WHERE relnamespace = ANY ($1::regnamespace[]) AND relkind = 'r')",
                                         {move.schemas()});
        for (int i = 0; i < rows.rows(); i++)
            total_ += sizes_[rows.text(i, 0)] = rows.number(i, 1);
    }
    std::size_t total() const { return static_cast<std::size_t>(total_ >> 20); }

    /* i, d: the copy of the table has not ended. The size of another one is not asked, because it
     * would wait for the ALTER TABLE that builds a key. */
    std::size_t on_target(Connection& target, const Move& move) const
    {
        const Result rows = target.query(R"(
            SELECT srrelid::regclass, CASE WHEN srsubstate = 'd' THEN pg_relation_size(srrelid) ELSE 0 END
            FROM pg_subscription_rel JOIN pg_subscription AS s ON s.oid = srsubid
            WHERE subname = $1 AND srsubstate IN ('i', 'd'))",
                                         {move.name});
        std::int64_t left = 0;
        for (int i = 0; i < rows.rows(); i++)
            if (const auto table = sizes_.find(rows.text(i, 0)); table != sizes_.end())
                left += std::max<std::int64_t>(0, table->second - rows.number(i, 1));
        return static_cast<std::size_t>((total_ - left) >> 20);
    }

private:
    std::map<std::string, std::int64_t> sizes_; /* on the source, when the copy begins */
    std::int64_t total_ = 0;
};

/* Tables whose rows have been copied, with the slot from which the changes since then are read.
 * srsubstate f is SUBREL_STATE_FINISHEDCOPY. The name is that of ReplicationSlotNameForTablesync(),
 * with the system identifier of the subscriber. */
const char* const kCopied = R"(
    SELECT srrelid::regclass AS name, format('pg_%s_sync_%s_%s', srsubid, srrelid, system_identifier) AS slot
    FROM pg_subscription_rel JOIN pg_subscription AS s ON s.oid = srsubid, pg_control_system()
    WHERE subname = $1 AND srsubstate = 'f')";

/* The worker of such a table drops the slot before it commits that the table is done
 * (process_syncing_tables_for_sync()). After a crash of the target in between, the next worker
 * looks for that slot for ever. If there was no crash, the worker of this moment is still there, or
 * the table is done when it is read again. */
void require_slots_of_tables(Servers& servers, const Move& move)
{
    auto& [source, target] = servers;
    const Result copied = target.query(
        std::string("SELECT array_agg(slot) FROM (") + kCopied + ") AS c", {move.name});
    if (copied.is_null(0, 0))
        return;
    const Result missing =
        source.query("SELECT array_agg(slot) FROM unnest($1::text[]) AS slot "
                     "WHERE slot NOT IN (SELECT slot_name FROM pg_replication_slots)",
                     {copied.text(0, 0)});
    if (missing.is_null(0, 0))
        return;
    const Result workers = target.query(
        "SELECT FROM pg_stat_subscription WHERE subname = $1 AND relid IS NOT NULL", {move.name});
    if (workers.rows() > 0)
        return;
    const Result lost = target.query(std::string("SELECT name FROM (") + kCopied +
                                         ") AS c WHERE slot = ANY ($2::text[])",
                                     {move.name, missing.text(0, 0)});
    if (lost.rows() > 0)
        throw MustStartAnew("the copy of table " + lost.text(0, 0) +
                            " cannot go on, because a crash of the target has lost its end");
}

/* Little may be left while no worker runs: the launcher waits for wal_retrieve_retry_interval
 * before it starts one again. So a row passes through the stream while clients still write. */
void await_probe(Servers& servers, const Move& move)
{
    const std::string probe = send_probe(servers.source, move);
    const std::string sql = move.sql("SELECT FROM @move@.marker WHERE id = $1::uuid");
    await_replication(servers, move, [&] { return servers.target.query(sql, {probe}).rows() > 0; });
}

} // namespace

/* The slot comes after the COMMIT of the publication. A logical slot cannot be made in a
 * transaction that has written, and pgoutput looks the publication up in the catalogs as they were
 * at the change that it decodes: before the publication it would find none. A kill between the two
 * leaves a record without a slot, and the next command makes it. */
void prepare_source(Servers& servers, const Move& move, const Routing& routing, bool is_reversible)
{
    auto& [source, target] = servers;
    if (!read_state(source, move)) {
        warn("source: publication and slot");
        source.run("BEGIN");
        make_state(source, move, "", target.address(), Step::prepared);
        if (is_reversible)
            make_reversible(source, move);
        keep_routing(source, move.name, routing);
        make_fence(source, move);
        make_fingerprint(source, move);
        make_publication(source, move);
        source.run("COMMIT");
    }
    require_own_publication(source, move);
    /* A second slot would begin later, and the rows written in between would be lost. */
    if (read_state(target, move))
        require_slot(source, move);
    else
        make_slot_anew(source, move);
}

/* One transaction, so a command that is killed leaves nothing, and the next one begins here again.
 * A subscription can be made in it because its slot is there already (create_slot = false).
 *
 * If the definition is changed while pg_dump reads it, the archive can have a part of the change,
 * so require_no_change() comes after it. claim_shard() keeps another schema of the target from the
 * number until the COMMIT. */
void prepare_target(Servers& servers, const Move& move, const Workers& workers)
{
    auto& [source, target] = servers;
    if (read_state(target, move))
        return;
    warn("target: definition and subscription");
    note_fingerprint(source, move);
    const Archive archive = archive_of(source, move);
    note_definition(source, move, archive);
    const std::string definition = definition_before_rows(source, move, archive);
    require_no_change(source, move);
    target.run("BEGIN ISOLATION LEVEL READ COMMITTED");
    claim_shards(target, move);
    restore(target, definition, sole_owner(source, move.shards));
    make_state(target, move, require_state(source, move).id, source.address(), Step::copying);
    make_fence(target, move);
    /* The apply worker is a replica, which this does not stop. */
    for (const std::string& statement : fence_triggers(target, move, ""))
        target.run(statement);
    close_shard(target, move, move.title() + ", is not open here yet",
                "It is being moved from " + source.server() + ".");
    stop_sequences(target, move);
    hide_statements(target);
    target.run(subscription_sql(target, move.name, move.name, workers.dsn,
                                "slot_name = '" + move.slot + "'" + format_option(servers, move) +
                                    worker_option(target, source, source, move.shards, workers)));
    if (const std::string table = find_foreign_table(target, move); !table.empty())
        throw MustStartAnew("table " + table + " is published, and not of the shard");
    if (!has_found_publication(target, move))
        throw Failure("from " + target.server() +
                      ", the connection string of the source leads to a server that is not the "
                      "source: it has no publication " +
                      move.name + ". Give another --source");
    target.run("COMMIT"); /* with the statement it would be logged after its settings have ended */
}

void await_copy(Servers& servers, const Move& move, int index_jobs)
{
    warn("target: rows");
    const CopiedSize size(servers.source, move);
    Progress progress("copy (MB)", size.total());
    KeysBehindRows keys(servers, move, index_jobs);
    await_replication(servers, move, [&] {
        progress.reach(size.on_target(servers.target, move));
        /* In each round: the target may crash at any time of the copy. */
        require_slots_of_tables(servers, move);
        const Result left = servers.target.query(R"(
            SELECT FROM pg_subscription_rel JOIN pg_subscription AS s ON s.oid = srsubid
            WHERE subname = $1 AND srsubstate <> 'r')",
                                                 {move.name});
        return keys.are_built() && left.rows() == 0;
    });
}

/* The definition locks one table after the other, and the apply worker the tables of a transaction
 * in their order: together they would deadlock. So the subscription is disabled while it is made.
 *
 * A command that is killed here leaves the subscription disabled and the state copying. --resume
 * comes here again, because all rows are there: await_copy() waits for none.
 *
 * pg_dump reads the definition again, so it is compared with the one that was copied. Autovacuum
 * may not have come to the new tables, and never analyzes a partitioned one: without ANALYZE the
 * first queries of clients would be planned without statistics. */
void finish_definition(Servers& servers, const Move& move, int index_jobs)
{
    auto& [source, target] = servers;
    if (require_state(target, move).step != Step::copying)
        return;
    warn("target: indexes, foreign keys, triggers");
    note_fingerprint(source, move);
    const Archive archive = archive_of(source, move);
    /* All other indexes, foreign keys and triggers. This also fills the materialized views. */
    std::vector<Archive::Item> rest = all_but_keys(source, move, archive);
    std::vector<std::string> indexes;
    for (const Archive::Item& index : take_large_indexes(servers, move, rest))
        indexes.push_back(archive.sql({index}));
    const std::string definition = archive.sql(rest);
    const std::string owner = sole_owner(source, move.shards);
    require_same_definition(source, move, archive);
    require_no_change(source, move);
    std::string analysis;
    for (const std::string& table : tables_of(target, move.shards, "rp"))
        analysis += "ANALYZE " + table + ";";
    stop_subscription(servers, move);
    build_indexes(target, move, indexes, owner, index_jobs);
    target.run("BEGIN");
    if (!definition.empty())
        restore(target, definition, owner);
    target.run(analysis);
    write_step(target, move, Step::ready);
    target.run(move.sql("ALTER SUBSCRIPTION @move@ ENABLE; COMMIT"));
}

/* confirmed_flush_lsn is the position up to which the target has everything on its disk. */
void await_lag(Servers& servers, const Move& move, Clock::duration max_lag)
{
    Lag measured(max_lag);
    warn("target: waiting until it has caught up");
    await_replication(servers, move, [&] {
        const Result lag = servers.source.query(R"(
            SELECT pg_wal_lsn_diff(pg_current_wal_lsn(), confirmed_flush_lsn)::bigint,
                   pg_wal_lsn_diff(confirmed_flush_lsn, '0/0')::bigint
            FROM pg_replication_slots WHERE slot_name = $1)",
                                                {move.slot});
        return lag.rows() > 0 && measured.is_small(lag.number(0, 0), lag.number(0, 1));
    });
    await_probe(servers, move);
}
