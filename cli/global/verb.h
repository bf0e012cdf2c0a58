/* The verb global and its arguments. */

#pragma once

#include <string>
#include <vector>

/* An empty string or list was not given. */
struct GlobalOptions {
    std::vector<std::string> tables; /* as SQL writes them, with their schema */
    std::vector<std::string> on;     /* the server where they are written, then the followers */
    std::vector<std::string> dsns;   /* of verify and run */
    std::string sql;                 /* of run: one of these two */
    std::string file;
    std::string role;
    double timeout = 10; /* seconds */
    std::string source;  /* the first of on, as the followers' servers reach it */
    bool trusts_owners = false;
    bool is_forced = false;
    bool keep_going = false;
    bool json = false;
};

int add_global(const GlobalOptions& options);
int run_global(const GlobalOptions& options);
int verify_global(const GlobalOptions& options);
int remove_global(const GlobalOptions& options);
