/* Shards that no server has open: their new server was restored from before the opening, a standby
 * of it was promoted, or the schema was dropped there. No verb ends that. */

#pragma once

#include <map>
#include <string>

#include "fleet/in_transit.h"
#include "postgres/servers.h"

class ClosedEverywhere
{
public:
    explicit ClosedEverywhere(ServerSet& servers) : servers_(servers) {}

    /* By the record of a server where the shard is closed. The caller knows that none of the
     * servers has it open. False if its other server is not among them. */
    bool has(const InTransit& closed);

private:
    Connection* find_server(const Address& address);

    ServerSet& servers_;
    std::map<std::string, Connection*> found_;
};

std::string describe_closed(const InTransit& closed);
/* What to do then. */
extern const char* const kClosedEverywhere;
