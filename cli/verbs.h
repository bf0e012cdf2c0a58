/* The verbs. Each takes its part of the command line and returns the exit code: 0 done, 1 found
 * something, 3 failed. An exception is 2 for a UsageError, else 3. */

#pragma once

#include <cstdint>
#include <string>
#include <vector>

enum ExitCode { kDone = 0, kFound = 1, kWrongUsage = 2, kFailed = 3 };

/* The arguments of all verbs; each verb reads its own. An empty string or list was not given. The
 * defaults are those that the help in arguments.h tells. */
struct Options {
    std::vector<std::string> dsns;
    bool keep_going = false;
    std::string template_schema;
    std::string shards;
    bool json = false;

    std::string schema_pattern; /* clone */
    int jobs = 1;

    std::string file; /* run */
    std::string sql;
    std::string folder;
    std::string once;
    double lock_timeout = 0; /* seconds; 0: the server's */
    int tries = 5;
    bool no_transaction = false;

    double statement_timeout = 0; /* query: seconds; 0: the server's */

    bool full = false; /* verify */
    bool rows = false;

    std::string format = "table"; /* map, query */
    std::string alias = "shard{}";
    std::string cluster = "snowflake";
    std::string pooler_user;

    std::string to; /* clone, move */

    std::string by = "size"; /* plan */
    std::string weights;
    std::vector<std::string> drain;
    double threshold = 0.1;
    std::size_t max_moves = 8192;
    std::string exclude;
    std::uint64_t rate = 50 << 20; /* bytes per second */

    std::string schema; /* move */
    std::string plan;
    bool is_one_of_many = false;
    std::string from;
    std::string source;                 /* the server of --from as that of --to reaches it */
    std::string target;                 /* the other way round */
    std::vector<std::string> pgbouncer; /* consoles, and the file of each */
    std::vector<std::string> config;
    std::string switch_command;
    bool trusts_owners = false;
    bool is_dry_run = false;
    bool is_resumed = false;
    bool is_aborted = false;
    bool is_undone = false;
    bool is_reversible = false;
    bool drops_source = false;
    std::uint64_t max_lag = 1 << 20;
    double timeout = 10;
    std::uint64_t verify_size = 1 << 30;

    std::string standby; /* split */
    bool drops_rest = false;
};

/* They throw UsageError, Failure and other std::exceptions; main() prints those. */
int list_shards(const Options& options);
int clone_shards(const Options& options);
int run_on_shards(const Options& options);
int query_shards(const Options& options);
int diff_shards(const Options& options);
int verify_shards(const Options& options);
int map_shards(const Options& options);
int plan_shards(const Options& options);
int move_shard(const Options& options);
int split_server(const Options& options);
