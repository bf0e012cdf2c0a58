/* For verify: IDs that are not of the shard in whose schema they are. */

#pragma once

#include <vector>

#include "base/output.h"
#include "base/shards.h"
#include "postgres/connection.h"
#include "postgres/values.h"
#include "verbs/verbs.h"

struct OtherIds {
    std::vector<Row> findings; /* finding, server, object, problem, hint */
    bool is_all;               /* else it was told which IDs were not looked at, and why */
};

/* Settings of a session that reads the tables of all owners. */
void begin_reading(Connection& connection);

/* In the open shards of a server, over as many connections as --jobs has. */
OtherIds find_other_ids(Connection& connection, const Shards& shards, const VerifyOptions& options,
                        Progress& progress);
