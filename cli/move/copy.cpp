#include "move/command.h"

#include "base/output.h"
#include "cutover/dependents.h"
#include "cutover/lag.h"
#include "cutover/waiting.h"
#include "fleet/catalog.h"
#include "fleet/failover.h"
#include "move/fence.h"
#include "move/fingerprint.h"
#include "move/indexes.h"
#include "move/made.h"
#include "move/replication.h"
#include "move/rights.h"
#include "move/state.h"
#include "replication/keys.h"
#include "replication/needed.h"
#include "replication/owners.h"
#include "replication/publication.h"
#include "replication/rows.h"
#include "postgres/dump.h"
#include "postgres/session.h"
#include "postgres/settings.h"
#include "postgres/skipped.h"

namespace
{

std::int64_t size_on_target(Connection& target, const Move& move)
{
    const Result size =
        target.query("SELECT coalesce(sum(pg_table_size(oid)), 0)::bigint FROM pg_class "
                     "WHERE relnamespace = ANY ($1::regnamespace[]) AND relkind = 'r'",
                     {move.schemas()});
    return size.number(0, 0);
}

/* All rows of the snapshot are there. */
bool has_copy(Connection& target, const Move& move)
{
    const auto state = read_state(target, move);
    return state && state->step != Step::copying;
}

/* A copy on the target: one command makes it, because the snapshot ends with its connections. */
class Copy
{
public:
    Copy(Servers& servers, const Move& move, const std::string& publisher, const Tried* tried)
        : source_(servers.source), target_(servers.target), move_(move), publisher_(publisher),
          tried_(tried)
    {
    }

    void begin();
    void make_tables();
    void copy_rows(int jobs);
    void finish(int index_jobs);

private:
    void make_schemas();
    std::set<std::string> owners() const;
    void analyze();
    void require_noted_definition();
    void subscribe(const std::string& options);

    Connection& source_;
    Connection& target_;
    const Move& move_;
    const std::string& publisher_; /* as the target reaches it */
    const Tried* const tried_;
    std::optional<Archive> read_; /* if the definition has changed since it was tried */
    const Archive* archive_ = nullptr;
    Made made_;
    std::optional<SlotWithSnapshot> slot_;
};

/* The archive has the definition of the snapshot: nothing has changed it from before the archive
 * until after the slot, which can wait long for running transactions. */
void Copy::begin()
{
    constexpr int kTries = 3;
    warn("source: definition and slot");
    forget_compared(source_, move_); /* of a target that is lost */
    for (int i = 1; i == 1 || has_changed(source_, move_); i++) {
        if (i > kTries)
            throw Late("the definition of the shard is being changed");
        const std::string fingerprint = note_fingerprint(source_, move_);
        if (tried_ && tried_->fingerprint == fingerprint)
            archive_ = &tried_->archive;
        else
            archive_ = &read_.emplace(source_, schemas_in(move_.shards));
        note_definition(source_, move_, *archive_);
        slot_.reset();
        drop_unread_slot(source_, move_);
        slot_.emplace(source_, move_.slot);
    }
    require_published_tables(source_, move_);
}

/* Three steps, and a command can be killed between them. First the record, the fence and empty
 * schemas, in one transaction: a schema without a record is not of the move, and --abort would not
 * drop it. The record says that they are a copy without an end, so a command that goes on drops
 * them here. Then the owners' sessions fill the schemas, and close the new tables in the same
 * transaction. At last this command closes the rest, before there are rows. claim_sql() keeps
 * other schemas of the target from the numbers until this connection ends. The subscription is a
 * trial: the rows may take hours. */
void Copy::make_tables()
{
    warn("target: definition");
    make_schemas();
    make_items(target_, *archive_, archive_->items(Archive::Section::pre_data),
               closing_by_owner(target_, move_));
    target_.run("BEGIN ISOLATION LEVEL READ COMMITTED");
    lock_made(target_, made_);
    made_.tables = read_tables(target_, made_);
    close_target(target_, move_, owners());
    target_.run("SAVEPOINT subscription");
    subscribe("slot_name = NONE, enabled = false");
    target_.run("ROLLBACK TO subscription; COMMIT");
}

void Copy::make_schemas()
{
    target_.run("BEGIN ISOLATION LEVEL READ COMMITTED");
    if (read_state(target_, move_)) {
        warn("the copy begins again, because the command that had begun it has ended");
        drop_shards(target_, move_.shards, move_.name);
    }
    if (move_.has_ids)
        target_.query(claim_sql(target_, move_.shards));
    find_needed(source_, target_, move_.shards).raise_first();
    for (const Archive::Schema& schema : archive_->schemas())
        target_.run("CREATE SCHEMA " + schema.quoted + " AUTHORIZATION " +
                    target_.identifier(schema.owner));
    made_ = read_made(target_, move_);
    make_state(target_, move_, require_state(source_, move_).id, source_.address(), Step::copying);
    make_closed_fence(target_, move_, source_.server(), owners());
    target_.run("COMMIT");
}

std::set<std::string> Copy::owners() const
{
    std::set<std::string> owners;
    for (const Archive::Schema& schema : archive_->schemas())
        owners.insert(schema.owner);
    return owners;
}

void Copy::copy_rows(int jobs)
{
    warn("target: rows");
    const Result tables = source_.query(R"(
        SELECT coalesce(array_agg(oid), '{}') FROM pg_class
        WHERE relnamespace = ANY ($1::regnamespace[]) AND relkind = 'r')",
                                        {move_.schemas()});
    std::vector<std::string> rewritten;
    try {
        rewritten =
            ::copy_rows(source_, target_, tables.text(0, 0), made_.tables, slot_->snapshot(), jobs);
    } catch (const ServerError&) {
        require_noted_definition(); /* of a table that is gone, for example */
        throw;
    }
    if (!rewritten.empty() && !is_untouched(source_, move_)) {
        require_noted_definition();
        throw Failure("table " + visible(rewritten.front()) + " was rewritten while it was copied");
    }
    if (!rewritten.empty())
        forget_definition(source_, move_);
    slot_.reset(); /* its connection: the subscription takes a sender, too */
}

/* The subscription comes last: the definition locks one table after the other, and the apply worker
 * the tables of a transaction in their order, so together they would deadlock. Indexes that an
 * apply worker needs are there when it begins. */
void Copy::finish(int index_jobs)
{
    warn("target: indexes, foreign keys, triggers");
    /* This also fills the materialized views. */
    std::vector<Archive::Item> rest = archive_->items(Archive::Section::post_data);
    const std::vector<Archive::Item> indexes = take_large_indexes(source_, move_, rest);
    build_indexes(target_, *archive_, indexes, index_jobs);
    make_items(target_, *archive_, rest);
    analyze();
    require_noted_definition();
    target_.run("BEGIN ISOLATION LEVEL READ COMMITTED");
    lock_made(target_, made_);
    end_copy(target_, move_, source_.server());
    check_replicated_rows(target_, move_.shards);
    write_step(target_, move_, Step::ready);
    subscribe("slot_name = '" + move_.slot + "'" + failover_option(target_, source_));
    Following(target_, source_, move_.name).note();
    target_.run("COMMIT"); /* with the statement it would be logged after its settings have ended */
}

/* Autovacuum may not have come to the new tables, and never analyzes a partitioned one: without
 * ANALYZE the first queries of clients would be planned without statistics. It runs expressions of
 * the owners. */
void Copy::analyze()
{
    const Result owners = target_.query(R"(
        SELECT pg_get_userbyid(relowner), string_agg(format('ANALYZE %s;', oid::regclass), '')
        FROM pg_class WHERE relnamespace = ANY ($1::oid[]) AND relkind IN ('r', 'p') GROUP BY 1)",
                                        {made_.schemas});
    for (int i = 0; i < owners.rows(); i++) {
        begin_of_owner(target_, owners.text(i, 0));
        run_in_session(target_, owners.text(i, 1));
        commit_of_owner(target_);
    }
}

void Copy::require_noted_definition()
{
    if (has_changed(source_, move_))
        require_same_definition(source_, move_, archive_of(source_, move_));
}

/* Runs in a transaction of the caller. The target has the rows from before the slot (copy_data). */
void Copy::subscribe(const std::string& options)
{
    hide_statements(target_);
    const std::string sql = subscription_sql(target_, move_.name, move_.name, publisher_,
                                             options + ", copy_data = false");
    try {
        target_.run(sql);
        give_to_worker(target_, source_, move_);
    } catch (const ServerError& error) { /* of the target alone, which says "the publisher" */
        throw ServerError("subscription to " + source_.server() + ": " + error.what(),
                          error.sqlstate);
    }
    if (const std::string table = find_foreign_table(target_, move_); !table.empty())
        throw MustStartAnew("table " + table + " is published, and not of the shard");
    if (!has_found_publication(target_, move_))
        throw Failure("from " + target_.server() +
                      ", the connection string of the source leads to a server that is not the "
                      "source: it has no publication " +
                      move_.name + ". Give another --source");
}

/* After a failover of the source to a standby that lacks changes the slot can be ahead of its WAL:
 * the target had them, and goes on from there. Until the WAL is there, changes of the source are
 * not sent. */
void pass_slot(Servers& servers, const Move& move, std::int64_t ahead)
{
    constexpr std::int64_t kMost = 1 << 30;
    constexpr std::int64_t kPiece = 1 << 20;
    const std::string problem = servers.target.server() + " is ahead of " +
                                servers.source.server() + " by " + pretty_size(ahead) + " of WAL";
    if (ahead > kMost)
        throw MustStartAnew(problem);
    warn(problem + ", which is filled up now");
    forget_following(servers.target, move.name);
    servers.source.query("SELECT pg_logical_emit_message(true, '', repeat(' ', $1))",
                         {std::to_string(std::min(ahead, kPiece))});
}

/* Little may be left while no worker runs: the launcher waits for wal_retrieve_retry_interval
 * before it starts one again. So a row passes through the stream while clients still write. The
 * slot can pass it, and the target have no row: then changes of clients are lost in the same way.
 * The slot is read before the row. */
void await_probe(Servers& servers, const Move& move)
{
    std::string probe;
    std::string at;
    const auto send = [&] {
        probe = send_probe(servers.source, move);
        at = servers.source.query("SELECT pg_current_wal_lsn()").text(0, 0);
    };
    send();
    await_replication(servers, move, [&] {
        const Result slot = servers.source.query(
            "SELECT confirmed_flush_lsn >= $2::pg_lsn, pg_wal_lsn_diff(confirmed_flush_lsn, "
            "pg_current_wal_lsn())::bigint FROM pg_replication_slots WHERE slot_name = $1",
            {move.slot, at});
        const std::string sql = move.sql("SELECT FROM @move@.marker WHERE id = $1::uuid");
        if (servers.target.query(sql, {probe}).rows() > 0)
            return true;
        if (slot.rows() == 0 || !slot.flag(0, 0))
            return false;
        find_unsubscribed(servers.target, move.name, move.shards).raise_first();
        forget_following(servers.target, move.name);
        if (slot.number(0, 1) > 0)
            pass_slot(servers, move, slot.number(0, 1));
        send();
        return false;
    });
}

} // namespace

/* The slot comes after the COMMIT of the publication. pgoutput looks the publication up in the
 * catalogs as they were at the change that it decodes: before the publication it would find none.
 */
void prepare_source(Servers& servers, const Move& move, const Routing& routing, bool is_reversible,
                    bool is_held)
{
    auto& [source, target] = servers;
    if (!read_state(source, move)) {
        warn("source: publication");
        source.run("BEGIN");
        make_state(source, move, "", target.address(), Step::prepared);
        if (is_reversible)
            make_reversible(source, move);
        if (is_held)
            make_held(source, move);
        keep_routing(source, move.name, routing);
        make_fence(source, move);
        make_fingerprint(source, move);
        make_publication(source, move);
        source.run("COMMIT");
    }
    require_own_publication(source, move);
    /* The next slot would begin later, and the rows written in between would be lost. */
    if (has_copy(target, move))
        require_slot(source, move);
}

void copy_shards(Servers& servers, const Move& move, const std::string& publisher,
                 const Tried* tried, int copy_jobs, int index_jobs, Laps& laps)
{
    if (has_copy(servers.target, move))
        return;
    Copy copy(servers, move, publisher, tried);
    copy.begin();
    copy.make_tables();
    laps.add("definition");
    copy.copy_rows(copy_jobs);
    laps.add("rows", size_on_target(servers.target, move));
    copy.finish(index_jobs);
    laps.add("indexes, keys, triggers");
}

/* confirmed_flush_lsn is the position up to which the target has everything on its disk. */
void await_lag(Servers& servers, const Move& move, Clock::duration max_lag)
{
    Lag measured(max_lag);
    std::int64_t left = 0;
    Wait wait([&] { return "target: it is behind by " + pretty_size(left); });
    warn("target: waiting until it has caught up");
    await_replication(servers, move, [&] {
        const Result lag = servers.source.query(R"(
            SELECT pg_wal_lsn_diff(pg_current_wal_lsn(), confirmed_flush_lsn)::bigint,
                   pg_wal_lsn_diff(confirmed_flush_lsn, '0/0')::bigint
            FROM pg_replication_slots WHERE slot_name = $1)",
                                                {move.slot});
        if (lag.rows() == 0)
            return false;
        left = lag.number(0, 0);
        wait.tell();
        if (left < 0) {
            pass_slot(servers, move, -left);
            return false;
        }
        return measured.is_small(left, lag.number(0, 1));
    });
    await_probe(servers, move);
    find_skipped(servers.target, move.name).raise_first();
}
