/* The verbs. Each takes what stands on its command line and returns the exit code: 0 done, 1 found
 * something, 3 failed; UsageError is 2. */

#pragma once

#include <string>
#include <vector>

enum ExitCode { kDone = 0, kFound = 1, kWrongUsage = 2, kFailed = 3 };

struct ListOptions {
    std::vector<std::string> dsns;
    bool json = false;
};
int list_shards(const ListOptions& options);

struct MapOptions {
    std::vector<std::string> dsns;
    std::string format = "table";
    std::string alias = "shard{}";
    std::string cluster = "snowflake";
    bool json = false;
};
int map_shards(const MapOptions& options);

struct CloneOptions {
    std::string dsn;
    std::string template_schema;
    std::string shards;
    std::string schema_pattern;
    int jobs = 1;
    bool json = false;
};
int clone_shards(const CloneOptions& options);

struct RunOptions {
    std::string dsn;
    std::string shards;
    std::string file;
    std::string sql;
    bool keep_going = false;
    bool no_transaction = false;
    bool json = false;
};
int run_on_shards(const RunOptions& options);

struct DiffOptions {
    std::string dsn;
    std::string template_schema;
    std::string shards;
    bool json = false;
};
int diff_shards(const DiffOptions& options);

struct VerifyOptions {
    std::vector<std::string> dsns;
    bool full = false;
    bool json = false;
};
int verify_shards(const VerifyOptions& options);
