/* The shards that query asks, and the query in all of them. */

#pragma once

#include <atomic>
#include <list>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "postgres/servers.h"
#include "verbs/in_shard.h"
#include "verbs/row_sink.h"
#include "verbs/since.h"
#include "verbs/verbs.h"

/* A shard that is asked, and its place in the order of all. */
struct Asked {
    Shard shard;
    std::string problem; /* why it is not asked */
    Source source;       /* for --since */
    std::size_t place = 0;
};

/* The shards of a server. Each of its connections takes the next one. */
struct AskedServer {
    std::string server;
    std::list<Connection> more; /* connections beside the first */
    std::vector<Asked> shards;
    ShardSet moving; /* by a move or a split; they may be open nevertheless */
    std::unique_ptr<std::atomic<std::size_t>> next = std::make_unique<std::atomic<std::size_t>>(0);
    /* Connections that are not lost. */
    std::unique_ptr<std::atomic<std::size_t>> alive = std::make_unique<std::atomic<std::size_t>>(1);
};

/* The query in all shards, over all connections. */
class ShardQuery
{
public:
    /* since: null without --since. */
    ShardQuery(const QueryOptions& options, Since* since, RowSink& sink)
        : options_(options), since_(since), sink_(sink)
    {
    }

    /* asked[i] is of server i. */
    void run(ServerSet& servers, std::vector<AskedServer>& asked);

    /* By error, the shards that did not answer. */
    const std::map<std::string, ShardSet>& errors() const { return errors_; }

private:
    std::string beginning(const Connection& connection) const;
    static std::string beginning_in_shard();
    void work_on(Connection& connection, AskedServer& server);
    void add_error(const std::string& error, const Shard& shard);
    void ask_with_tries(Connection& connection, const Asked& asked);
    void ask(Connection& connection, const Asked& asked, bool& has_rows);
    void read(Connection& connection, const Asked& asked, const Parameters& parameters,
              bool& has_rows);

    const QueryOptions& options_;
    Since* const since_;
    RowSink& sink_;
    std::mutex lock_;
    std::map<std::string, ShardSet> errors_;
};
