/* What verify looks for on one server, and between servers. */

#pragma once

#include <string>
#include <vector>

#include "catalog.h"
#include "output.h"

struct Finding {
    std::string kind; /* shard, id, sequence, leftover */
    std::string server;
    std::string object;
    std::string problem;
    std::string hint; /* the statement or command that mends it */
};

/* A bigint column whose DEFAULT makes IDs of a shard. Names are as SQL writes them. */
struct IdColumn {
    std::string shard;
    std::string schema;
    std::string table; /* with its schema */
    std::string column;
    std::string sequence; /* empty: not a constant */
    std::string epoch_ms;
    bool has_index; /* whose first column it is */
    double rows;    /* estimate */
};

struct ServerReport {
    std::string server;
    std::vector<Shard> shards;
    std::vector<IdColumn> columns;
    std::vector<Finding> findings;
};

/* IDs and sequences of one server, and what a move or a clone that was killed has left there. */
ServerReport verify_server(Connection& connection, bool is_full, Progress& progress);
