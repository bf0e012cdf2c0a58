/* All verbs but plan, move, split and global, and their arguments. They return the exit code: 0
 * done, 1 found something, 3 failed. They throw UsageError, which is 2, and Failure and other
 * std::exceptions, which are 3. */

#pragma once

#include <string>
#include <vector>

/* An empty string or list was not given. */
struct ServerOptions {
    std::vector<std::string> dsns;
    bool keep_going = false;
    bool json = false;
};

struct ListOptions : ServerOptions {
    std::string format;
};
int list_shards(const ListOptions& options);

struct CloneOptions : ServerOptions {
    std::string template_schema;
    std::string shards;
    std::string schema_pattern;
    std::string to;
    int jobs = 1;
    bool is_dry_run = false;
};
int clone_shards(const CloneOptions& options);

struct RunOptions : ServerOptions {
    std::string shards; /* also all */
    std::string sql;    /* one of these three */
    std::string file;
    std::string folder;
    std::string once;
    int jobs = 1;
    double lock_timeout = 0; /* seconds; 0: the server's */
    int tries = 5;
    int canary = 0;       /* 0: none */
    int max_failures = 1; /* keep_going without this option: any number */
    bool no_transaction = false;
    bool is_dry_run = false;
};
int run_on_shards(const RunOptions& options);

struct QueryOptions : ServerOptions {
    std::string shards;
    std::string sql;
    std::string format;
    int jobs = 1;
    double statement_timeout = 0; /* seconds; 0: the server's */
    std::string since;
    double settle_timeout = 10; /* seconds */
    std::string then;
    std::string at;
};
int query_shards(const QueryOptions& options);

struct DiffOptions : ServerOptions {
    std::string template_schema;
    std::string shards;
};
int diff_shards(const DiffOptions& options);

struct VerifyOptions : ServerOptions {
    bool full = false;
    bool rows = false;
    int jobs = 1;
};
int verify_shards(const VerifyOptions& options);

struct MapOptions : ServerOptions {
    std::string format;
    std::string alias = "shard{}";
    std::string cluster = "snowflake";
    std::string user;
    bool search_path = false;
    std::vector<std::string> replicas;
};
int map_shards(const MapOptions& options);
