/* snowflake-shard query: the rows of a query in every shard. */

#include <algorithm>
#include <atomic>
#include <list>
#include <map>
#include <optional>

#include "base/output.h"
#include "fleet/in_transit.h"
#include "fleet/placement.h"
#include "postgres/sql_text.h"
#include "postgres/values.h"
#include "verbs/rights.h"
#include "verbs/row_order.h"
#include "verbs/since.h"
#include "verbs/verbs.h"

namespace
{

/* A shard that is asked, and its place in the order of all. */
struct Asked {
    Shard shard;
    Rights rights;
    Source source; /* for --since */
    std::size_t place = 0;
};

/* The shards of a server. Each of its connections takes the next one. */
struct Work {
    std::string server;
    std::list<Connection> more; /* connections beside the first */
    std::vector<Asked> shards;
    ShardSet moving; /* by a move or a split; they may be open nevertheless */
    std::unique_ptr<std::atomic<std::size_t>> next = std::make_unique<std::atomic<std::size_t>>(0);
    /* Connections that are not lost. */
    std::unique_ptr<std::atomic<std::size_t>> alive = std::make_unique<std::atomic<std::size_t>>(1);
};

/* The moves are read before the open shards. In the other order a move that ends in between would
 * leave its shard in neither: not open in the first query, and without a record in the second. Then
 * the rows of the shard would be missing without a word. */
Work prepare(Server& server, const QueryOptions& options)
{
    Work work;
    work.server = server.name();
    for (const InTransit& one : read_in_transit(server.connection))
        if (one.state != InTransit::State::rest)
            work.moving.insert(one.shard.number);
    const std::vector<Shard> all = read_shards(server.connection);
    std::map<std::string, Rights> rights = read_rights(server.connection);
    const std::map<int, std::string> twice = find_twice(server.connection, all);
    std::map<std::string, Source> sources;
    if (!options.since.empty())
        sources = read_sources(server.connection);
    for (const Shard& shard :
         options.shards.empty() ? all : choose_shards(all, parse_shards(options.shards))) {
        Asked asked = {shard, rights[shard.schema], sources[shard.schema]};
        /* Both schemas are left out: a role that plants one of them refuses service for a number
         * at most. */
        if (const auto found = twice.find(shard.number); found != twice.end())
            asked.rights.problem = found->second;
        work.shards.push_back(asked);
    }
    /* Opened before the first query, so that too many connections are an error of the server, and
     * not of some shards. */
    for (std::size_t i = 1; i < std::min(work.shards.size(), std::size_t(options.jobs)); i++)
        work.more.emplace_back(server.dsn());
    *work.alive += work.more.size();
    return work;
}

/* By shard, and so in ascending order for each server, too: RowOrder relies on that. Returns how
 * many there are. A shard on two servers would be counted twice, so that is an error before any row
 * is printed. */
std::size_t put_in_order(std::vector<Work>& work)
{
    struct Place {
        Asked* asked;
        const Work* work;
    };
    std::vector<Place> places;
    for (Work& of_server : work)
        for (Asked& asked : of_server.shards)
            places.push_back({&asked, &of_server});
    std::stable_sort(places.begin(), places.end(), [](const Place& one, const Place& two) {
        return one.asked->shard.number < two.asked->shard.number;
    });
    for (std::size_t i = 0; i < places.size(); i++) {
        places[i].asked->place = i;
        if (i == 0 || places[i].work == places[i - 1].work)
            continue;
        const Shard& shard = places[i].asked->shard;
        if (shard.number == places[i - 1].asked->shard.number)
            throw Failure("shard " + std::to_string(shard.number) + " is open on " +
                          places[i - 1].work->server + " and on " + places[i].work->server +
                          "\nHINT:  snowflake-shard verify tells more. If it is moving just now, "
                          "run the query again.");
    }
    return places.size();
}

/* During the switch of a move or a split a shard is open on neither side for a moment. Returns such
 * shards, which are not asked. They make the exit code 3: a sum over the rows would be too small.
 * query does not wait for them, because a switch that was interrupted does not end by itself. */
ShardSet warn_of_moving(const std::vector<Work>& work, const ShardSet& wanted)
{
    ShardSet moving;
    for (const Work& of_server : work)
        for (const int number : of_server.moving)
            if (wanted.empty() || wanted.count(number) > 0)
                moving.insert(number);
    for (const Work& of_server : work)
        for (const Asked& asked : of_server.shards)
            moving.erase(asked.shard.number);
    if (!moving.empty())
        warn("moving, and open on none of the servers just now: " + format_shards(moving));
    return moving;
}

/* With a number behind those that are there already: a key of JSON comes once, and the query may
 * have a column shard of its own. */
std::vector<std::string> names_of(const std::vector<Column>& columns)
{
    std::vector<std::string> names = {"shard", "schema"};
    for (const Column& column : columns) {
        std::string name = column.name;
        for (int n = 2; std::find(names.begin(), names.end(), name) != names.end(); n++)
            name = column.name + "_" + std::to_string(n);
        names.push_back(name);
    }
    return names;
}

std::optional<Since> since_of(const QueryOptions& options)
{
    if (options.since.empty())
        return {};
    return std::make_optional<Since>(options.since, options.settle_timeout);
}

/* The query in all shards, over all connections. */
class Query
{
public:
    Query(const QueryOptions& options, std::vector<Work>& work, std::size_t shards)
        : options_(options), work_(work), since_(since_of(options)),
          printer_(format_of(options.format, options.json), !since_ || since_->is_first()),
          order_(shards, printer_)
    {
    }

    /* Returns whether all shards have answered. */
    bool run(ServerSet& servers)
    {
        if (since_)
            Since::begin_output();
        on_all_connections(servers, work_,
                           [&](Connection& connection, Work& work) { work_on(connection, work); });
        if (!columns_)
            printer_.begin({"shard", "schema"});
        printer_.end();
        if (since_)
            since_->save();
        for (const auto& [error, shards] : errors_)
            warn((shards.size() == 1 ? "shard " : "shards ") + format_shards(shards) + ": " +
                 error);
        return errors_.empty();
    }

private:
    /* Here, so that an error of it is one of the shard: the server may be lost at any time.
     * cursor_tuple_fraction = 1: all rows are fetched, and the default plans for the first 10 %.
     * idle_in_transaction_session_timeout = 0: between two FETCHes the session waits for the turn
     * of its shard, and the timeout of a role would end it there. statement_timeout is of each
     * statement, so DECLARE and each FETCH have it anew, and the wait between them does not
     * count. */
    std::string beginning() const
    {
        std::string sql = "BEGIN READ ONLY; SET LOCAL cursor_tuple_fraction = 1; "
                          "SET LOCAL idle_in_transaction_session_timeout = 0";
        if (options_.statement_timeout > 0)
            sql += "; SET LOCAL statement_timeout = " + milliseconds_of(options_.statement_timeout);
        return sql;
    }

    void work_on(Connection& connection, Work& work)
    {
        for (std::size_t i = 0;
             connection.is_alive() && (i = (*work.next)++) < work.shards.size();) {
            const Asked& asked = work.shards[i];
            try {
                ask(connection, asked);
            } catch (const ServerError& error) {
                connection.rollback();
                add_error(explained(error, asked.rights), asked.shard);
            } catch (const Failure& error) {
                connection.rollback();
                add_error(error.what(), asked.shard);
            }
            /* Also after an error, because the shards behind this one wait for it. */
            order_.end(asked.place);
        }
        /* The shards that are left are of the other connections to the server. The last one that is
         * lost gives each its error, and ends it: shards of other servers wait for it. */
        if (connection.is_alive() || --*work.alive > 0)
            return;
        for (std::size_t i = 0; (i = (*work.next)++) < work.shards.size();) {
            const Asked& asked = work.shards[i];
            add_error("not asked, because the connection to " + work.server + " was lost",
                      asked.shard);
            order_.end(asked.place);
        }
    }

    void add_error(const std::string& error, const Shard& shard)
    {
        const std::lock_guard<std::mutex> lock(lock_);
        errors_[error].insert(shard.number);
    }

    void ask(Connection& connection, const Asked& asked)
    {
        if (!asked.rights.problem.empty())
            throw Failure(asked.rights.problem);
        Span span = {};
        Parameters parameters;
        if (since_) {
            span = since_->settle(connection, asked.shard, asked.source);
            parameters = {std::to_string(span.first), std::to_string(span.last)};
        }
        connection.run(beginning());
        fetch(connection, asked, declare(connection, asked, parameters));
        connection.run("COMMIT");
        if (since_)
            since_->note(asked.shard, span);
    }

    /* A cursor, so that no shard's rows have to fit into memory; it may wait for its turn. It takes
     * one statement, and no other than a query: DECLARE CURSOR refuses a WITH that changes rows,
     * and query() uses the extended protocol, which refuses a second statement behind a
     * semicolon. Returns the columns, if they are known before the first row.
     *
     * With the rights of the owner the library runs the query, and this cursor reads only its
     * result: no code of the shard runs behind the call of rows_as_owner(), in a FETCH. */
    std::vector<Column> declare(Connection& connection, const Asked& asked,
                                const Parameters& parameters)
    {
        const std::string cursor = "DECLARE snowflake_shard NO SCROLL CURSOR FOR\n";
        if (!asked.rights.is_as_owner) {
            connection.run("SET LOCAL search_path = " + asked.shard.quoted);
            connection.query(cursor + options_.sql, parameters);
            return {};
        }
        std::vector<Column> columns =
            read_columns_as_owner(connection, asked.shard, options_.sql, parameters);
        connection.query(cursor + rows_as_owner_sql(connection, asked.shard, options_.sql,
                                                    parameters, columns.size()));
        return columns;
    }

    void fetch(Connection& connection, const Asked& asked, std::vector<Column> columns)
    {
        const auto& [number, schema, quoted] = asked.shard;
        for (bool is_last = false; !is_last;) {
            const Result result = connection.query("FETCH 1000 FROM snowflake_shard");
            if (columns.empty())
                columns = columns_of(result);
            check_columns(columns);
            std::vector<Row> rows;
            for (int i = 0; i < result.rows(); i++) {
                rows.push_back({number, schema});
                for (Value& value : row_of(result, i, columns))
                    rows.back().push_back(std::move(value));
            }
            /* A full batch may be the last one: then the next FETCH returns no row. */
            is_last = result.rows() < 1000;
            order_.add(asked.place, std::move(rows));
        }
    }

    /* All shards have the columns of the first that has answered, by their names. A shard without
     * rows has columns, too, so the heading does not depend on the rows. */
    void check_columns(const std::vector<Column>& columns)
    {
        const std::vector<std::string> names = names_of(columns);
        const std::lock_guard<std::mutex> lock(lock_);
        if (!columns_) {
            columns_ = names;
            printer_.begin(names);
        }
        if (*columns_ != names)
            throw Failure("the columns of the query differ from those of the other shards");
    }

    const QueryOptions& options_;
    std::vector<Work>& work_;
    std::optional<Since> since_;
    RowPrinter printer_;
    RowOrder order_;
    std::mutex lock_;
    std::optional<std::vector<std::string>> columns_;
    std::map<std::string, ShardSet> errors_;
};

} // namespace

int query_shards(const QueryOptions& options)
{
    const ShardSet wanted = options.shards.empty() ? ShardSet() : parse_shards(options.shards);
    if (!options.since.empty() && (options.sql.find("$1") == std::string::npos ||
                                   options.sql.find("$2") == std::string::npos))
        throw UsageError("--since: the SQL has no $1 and $2\nHINT:  ... WHERE id > $1 AND id <= $2 "
                         "ORDER BY id");
    ServerSet servers(options.dsns, Access::reads, true);
    std::vector<Work> work =
        servers.on_each([&](std::size_t i) { return prepare(servers[i], options); });
    const std::size_t shards = put_in_order(work);
    const ShardSet moving = warn_of_moving(work, wanted);
    /* A number that is moving is somewhere. One that no server knows is an error before the first
     * query. */
    ShardSet missing = wanted;
    for (const int number : moving)
        missing.erase(number);
    for (const Work& of_server : work)
        for (const Asked& asked : of_server.shards)
            missing.erase(asked.shard.number);
    require_none(servers, missing);
    const bool is_complete = Query(options, work, shards).run(servers);
    return servers.exit_code(is_complete && moving.empty() ? kDone : kFailed);
}
