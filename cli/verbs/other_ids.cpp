#include "verbs/other_ids.h"

#include <algorithm>
#include <atomic>
#include <list>
#include <map>
#include <mutex>

#include "base/quoting.h"
#include "base/timeouts.h"
#include "fleet/locked.h"
#include "postgres/parallel.h"
#include "postgres/sql_text.h"
#include "postgres/unread.h"
#include "sql/sql.h"

namespace
{

/* Rows of a table that are looked at, where not all are. So the time of verify depends on the
 * number of tables more than on their size. The newest IDs are at an end of the index, which is
 * read beside the sample. */
constexpr int kSample = 10000;

/* IdColumns of a statement: to plan it takes longer than to look at one of them. */
constexpr std::size_t kBatch = 500;

/* A column whose DEFAULT makes IDs. */
struct IdColumn {
    const Shard* shard; /* of its schema */
    std::string table_oid;
    std::string number; /* attnum */
    std::string table;  /* names as SQL writes them */
    std::string name;
    std::string as_owner; /* the begin of a hint with a query of the table */
};
using IdColumns = std::vector<IdColumn>;

IdColumns read_columns(Connection& connection, const Shards& shards)
{
    std::map<std::pair<std::string, int>, const Shard*> open;
    for (const Shard& shard : shards)
        open[{shard.oid, shard.number}] = &shard;
    const Result rows = connection.query(id_columns_sql);
    IdColumns columns;
    for (int i = 0; i < rows.rows(); i++) {
        const auto shard = open.find({rows.text(i, 0), static_cast<int>(rows.number(i, 1))});
        if (shard != open.end())
            columns.push_back({shard->second, rows.text(i, 2), rows.text(i, 3), rows.text(i, 4),
                               rows.text(i, 5), rows.text(i, 6)});
    }
    return columns;
}

Result count_other_ids(Connection& connection, const IdColumns& columns, bool is_full)
{
    std::string tables;
    std::string numbers;
    std::string shards;
    for (const IdColumn& column : columns) {
        const std::string separator = tables.empty() ? "{" : ",";
        tables += separator + column.table_oid;
        numbers += separator + column.number;
        shards += separator + std::to_string(column.shard->number);
    }
    return connection.query(other_ids_sql, {tables + "}", numbers + "}", shards + "}",
                                            is_full ? "0" : std::to_string(kSample)});
}

/* The search in one server, over several connections. Each takes the next columns. */
class Search
{
public:
    Search(std::string server, IdColumns columns, bool is_full, Progress& progress)
        : server_(std::move(server)), columns_(std::move(columns)), is_full_(is_full),
          progress_(progress), findings_(batches())
    {
        progress_.expect(columns_.size());
    }

    std::size_t batches() const { return (columns_.size() + kBatch - 1) / kBatch; }

    template <typename Check>
    void work_on(Connection& connection, Check check)
    {
        for (std::size_t batch = 0; (batch = next_++) < batches();) {
            check();
            const auto first = columns_.begin() + static_cast<std::ptrdiff_t>(batch * kBatch);
            const auto size = std::min(kBatch, columns_.size() - batch * kBatch);
            const IdColumns columns(first, first + static_cast<std::ptrdiff_t>(size));
            look_at(connection, columns, findings_[batch]);
            progress_.add(size);
        }
    }

    /* In the order of the columns. */
    OtherIds result(Connection& connection)
    {
        for (const auto& [key, unread] : unread_)
            tell(connection, unread);
        OtherIds found = {{}, locked_.empty() && unread_.empty()};
        for (const std::vector<Row>& of_batch : findings_)
            found.findings.insert(found.findings.end(), of_batch.begin(), of_batch.end());
        return found;
    }

private:
    /* Tables of a shard with the same SQLSTATE, and the error of the first. */
    struct Unread {
        const Shard* shard;
        std::string error;
        std::map<std::string, std::string> tables{}; /* names by OID */
    };

    /* A table that is locked, that this role may not read, or that was dropped meanwhile, is no
     * obstacle to the others. */
    void look_at(Connection& connection, const IdColumns& columns, std::vector<Row>& findings)
    {
        try {
            add_findings(count_other_ids(connection, columns, is_full_), columns, findings);
        } catch (const ServerError& error) {
            if (!connection.is_alive())
                throw;
            if (columns.size() == 1)
                return error.sqlstate == kLockTimeout ? leave_out(connection, *columns[0].shard)
                                                      : note(columns[0], error);
            for (const IdColumn& column : columns)
                if (!is_left_out(*column.shard))
                    look_at(connection, {column}, findings);
        }
    }

    void add_findings(const Result& ids, const IdColumns& columns, std::vector<Row>& findings) const
    {
        for (int i = 0; i < ids.rows(); i++) {
            const IdColumn& column = columns[static_cast<std::size_t>(ids.number(i, 0) - 1)];
            const std::string shard = std::to_string(column.shard->number);
            findings.push_back({"id", server_, column.table + "." + column.name,
                                count_of(static_cast<std::size_t>(ids.number(i, 1)), "ID") +
                                    " not of shard " + shard + ", the smallest is " +
                                    ids.text(i, 2),
                                column.as_owner + "SELECT * FROM " + column.table + " WHERE " +
                                    column.name + " >= 9007199254740992 AND (" + column.name +
                                    " >> 10) & 8191 <> " + shard + ";"});
        }
    }

    bool is_left_out(const Shard& shard)
    {
        const std::lock_guard<std::mutex> lock(mutex_);
        return locked_.count(shard.oid) > 0;
    }

    /* After one wait for a lock: a shard may have any number of tables. */
    void leave_out(Connection& connection, const Shard& shard)
    {
        const std::string holder = find_locked(connection)[shard.oid];
        const std::lock_guard<std::mutex> lock(mutex_);
        if (locked_.insert({shard.oid, holder}).second)
            warn(server_ + ": " + shard.title() +
                 ": its IDs are not all looked at, because it is " +
                 (holder.empty() ? "locked" : holder));
    }

    void note(const IdColumn& column, const ServerError& error)
    {
        const std::lock_guard<std::mutex> lock(mutex_);
        unread_.insert({{column.shard->number, error.sqlstate}, {column.shard, error.what()}})
            .first->second.tables[column.table_oid] = column.table;
    }

    static void tell(Connection& connection, const Unread& unread)
    {
        std::string names;
        std::vector<std::string> oids;
        for (const auto& [oid, name] : unread.tables) {
            names += (names.empty() ? "" : ", ") + visible(name);
            oids.push_back(oid);
        }
        warn(unread.shard->title() + ": IDs are not looked at in " + names + ": " + unread.error +
             hint_for_unread(connection, sql_array(oids)));
    }

    const std::string server_;
    const IdColumns columns_;
    const bool is_full_;
    Progress& progress_;
    std::atomic<std::size_t> next_ = 0;
    std::vector<std::vector<Row>> findings_; /* by batch */
    std::mutex mutex_;
    Locked locked_;
    std::map<std::pair<int, std::string>, Unread> unread_; /* by shard and SQLSTATE */
};

} // namespace

/* Rows that a policy hides are an error here, not left out. Read-only transactions, so that no
 * function that is called on the way can write. */
void begin_reading(Connection& connection)
{
    connection.run("SET row_security = off; SET default_transaction_read_only = on; " +
                   lock_timeout_sql(timeouts::kReadLock, false));
}

OtherIds find_other_ids(Connection& connection, const Shards& shards, const VerifyOptions& options,
                        Progress& progress)
{
    Search search(connection.address().text(), read_columns(connection, shards), options.full,
                  progress);
    std::list<Connection> connections;
    while (connections.size() + 1 <
           std::min(search.batches(), static_cast<std::size_t>(options.jobs)))
        begin_reading(connections.emplace_back(connection.dsn_of_server()));
    std::vector<Connection*> all = {&connection};
    for (Connection& one : connections)
        all.push_back(&one);
    all_or_none(all.size(),
                [&](std::size_t i, const auto& check) { search.work_on(*all[i], check); });
    return search.result(connection);
}
