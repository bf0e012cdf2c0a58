/* The shards of servers as list shows them, and the totals of each server. */

#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/table.h"
#include "fleet/in_transit.h"

/* A shard on a server. */
struct Listed {
    int number;
    std::string schema;
    Value tables;
    Value rows;
    std::optional<std::int64_t> size; /* in bytes */
    Value last_id_at;
    std::optional<std::int64_t> last_id_ms;  /* the same, since 1970 */
    std::string server;                      /* that has the rows */
    std::optional<InTransit> transit;        /* by the record of this server */
    std::string name;                        /* of this server */
    std::optional<std::int64_t> behind = {}; /* the follower, in bytes */
    bool is_hidden = false;

    bool is_open() const { return !transit || transit->is_open; }
    std::string state() const { return transit ? state_of(*transit) : "open"; }
};

using Listing = std::vector<Listed>;

/* The numbers are those of the shards that are not hidden. */
struct Total {
    std::size_t shards = 0;
    std::map<std::string, std::size_t> states{};
    std::optional<std::int64_t> size{};
    std::optional<std::int64_t> largest{};
    std::optional<std::int64_t> last_id_ms{};
};

using Totals = std::vector<std::pair<std::string, Total>>;

/* By server, in the order of `servers`, also of those without shards. Nodes of Citus come behind
 * them. */
Totals totals_of(const Listing& shards, const std::vector<std::string>& servers);

/* OpenMetrics, in the part that is Prometheus' own text format as well: node_exporter reads only
 * that from files. A server has few series, however many shards it has; a shard has its own only in
 * transit. */
void print_metrics(const Listing& shards, const Totals& totals);
