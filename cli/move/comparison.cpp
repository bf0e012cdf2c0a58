/* The rows of both servers before the cutover, while clients write to the source. */

#include <cstdint>
#include <optional>

#include "base/output.h"
#include "fleet/failover.h"
#include "move/command.h"
#include "move/fingerprint.h"
#include "move/replication.h"
#include "postgres/settings.h"
#include "replication/comparison.h"
#include "replication/publication.h"

namespace
{

std::string indented_lines(const std::vector<std::string>& tables)
{
    std::string lines;
    for (const std::string& table : tables)
        lines += "\n    " + visible(table);
    return lines;
}

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

/* The target first: only the record of the source lets --cutover begin. */
void note_compared(Servers& servers, const Move& move)
{
    const bool is_held = require_state(servers.source, move).is_held;
    if (is_held)
        write_compared(servers.target, move, true);
    write_compared(servers.source, move, is_held);
}

} // namespace

/* A table that is rewritten is not decoded: ALTER COLUMN ... TYPE ... USING can give its rows other
 * values, and DROP COLUMN with ADD COLUMN, where pg_dump writes the same definition. After a change
 * of one of the servers it can have missed rows. */
bool may_differ(Servers& servers, const Move& move)
{
    return !is_untouched(servers.source, move) ||
           !Following(servers.target, servers.source, move.name).change().empty();
}

/* The size does not count if rows may differ. Definition and servers are noted anew when the rows
 * were found equal, and as they were before: a command that is killed meanwhile, or a change that
 * comes meanwhile, makes the next one compare them again. */
void compare_before_cutover(Servers& servers, const Move& move, std::uint64_t max_size, Laps& laps)
{
    Connection& source = servers.source;
    const Following following(servers.target, source, move.name);
    const std::string change = following.change();
    if (!change.empty()) {
        forget_compared_tables(source, move);
        max_size = SIZE_MAX;
        warn(change + ". So all rows are compared");
    }
    std::optional<Archive> written;
    if (!is_untouched(source, move)) {
        note_fingerprint(source, move);
        require_same_definition(source, move, written.emplace(source, schemas_in(move.shards)));
        forget_compared_tables(source, move);
        max_size = SIZE_MAX;
        warn("source: the definition is the same as when it was copied, but its tables may have "
             "been rewritten, so all rows are compared");
    }
    warn("both: comparing rows");
    const std::set<std::string> compared = read_compared(source, move);
    std::vector<std::string> tables;
    for (const std::string& table : tables_of(source, move.shards))
        if (compared.count(table) == 0)
            tables.push_back(table);
    const FollowerRows found = compare(servers, move, tables, max_size);
    laps.add("comparison", found.bytes, count_of(found.rows, "row"));
    if (found.differences.empty()) {
        if (!found.unknown.empty())
            throw Failure("not all rows could be compared, and nothing was opened" +
                          indented_lines(found.unknown));
        if (written)
            note_definition(source, move, *written);
        if (!change.empty())
            following.note();
        note_compared(servers, move);
        return;
    }
    throw MustStartAnew("the rows differ, and nothing was opened",
                        indented_lines(found.differences));
}
