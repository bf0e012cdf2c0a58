/* The verbs. Each takes what stands on the command line and returns the exit code: 0 done, 1 found
 * something, 3 failed. What it throws is 2 for a UsageError, else 3. */

#pragma once

#include <cstdint>
#include <string>
#include <vector>

enum ExitCode { kDone = 0, kFound = 1, kWrongUsage = 2, kFailed = 3 };

struct Options {
    std::vector<std::string> dsns;
    std::string dsn;
    std::string template_schema;
    std::string shards;
    bool json = false;

    std::string schema_pattern; /* clone */
    int jobs = 1;

    std::string file; /* run */
    std::string sql;
    bool keep_going = false;
    bool no_transaction = false;

    bool full = false; /* verify */

    std::string format = "table"; /* map */
    std::string alias = "shard{}";
    std::string cluster = "snowflake";

    std::string schema; /* move */
    std::string from;
    std::string to;
    std::string source; /* the server of --from as the target's server reaches it */
    std::string pgbouncer;
    std::string config;
    bool is_dry_run = false;
    bool is_resumed = false;
    bool is_aborted = false;
    bool drops_source = false;
    std::uint64_t max_lag = 1 << 20;
    double timeout = 10;
    std::uint64_t verify_size = 1 << 30;
};

int list_shards(const Options& options);
int clone_shards(const Options& options);
int run_on_shards(const Options& options);
int diff_shards(const Options& options);
int verify_shards(const Options& options);
int map_shards(const Options& options);
int move_shard(const Options& options);
