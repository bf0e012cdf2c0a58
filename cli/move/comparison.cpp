/* The rows of both servers before the cutover, while clients write to the source. */

#include "base/output.h"
#include "move/command.h"
#include "move/fingerprint.h"
#include "move/replication.h"
#include "postgres/settings.h"
#include "replication/comparison.h"
#include "replication/publication.h"

namespace
{

FollowerRows compare(Servers& servers, const Move& move, const std::vector<std::string>& tables,
                     std::uint64_t max_size)
{
    /* Sessions of its own, because the text of rows needs other settings. */
    Connection publisher(servers.source.dsn_of_server());
    Connection follower(servers.target.dsn_of_server());
    withstand_settings(publisher);
    withstand_settings(follower);
    try {
        return compare_with_follower(publisher, follower, tables, move.slot, max_size,
                                     [&](const std::vector<std::string>& some) {
                                         add_compared(servers.source, move, some);
                                     });
    } catch (const Failure&) {
        require_slot(servers.source, move); /* if it is gone, --resume would not help */
        throw;
    }
}

} // namespace

void compare_before_cutover(Servers& servers, const Move& move, std::uint64_t max_size, Laps& laps)
{
    Connection& source = servers.source;
    Connection& target = servers.target;
    note_same_definition(source, move);
    warn("both: comparing rows");
    const std::set<std::string> compared = read_compared(source, move);
    std::vector<std::string> tables;
    for (const std::string& table : tables_of(source, move.shards))
        if (compared.count(table) == 0)
            tables.push_back(table);
    const FollowerRows found = compare(servers, move, tables, max_size);
    for (const std::string& table : found.unknown)
        warn(visible(table));
    laps.add("comparison", found.bytes, count_of(found.rows, "row"));
    if (found.differences.empty()) {
        /* The target first: only the record of the source lets --cutover begin. */
        const bool is_held = require_state(source, move).is_held;
        if (is_held)
            write_compared(target, move, true);
        write_compared(source, move, is_held);
        return;
    }
    std::string differences;
    for (const std::string& difference : found.differences)
        differences += "\n    " + visible(difference);
    throw MustStartAnew("the rows differ, and nothing was opened", differences);
}
