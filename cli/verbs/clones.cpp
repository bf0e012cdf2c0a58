#include "verbs/clones.h"

#include <algorithm>
#include <atomic>

#include "base/output.h"
#include "definition/marks.h"
#include "fleet/catalog.h"
#include "postgres/session.h"

namespace
{

using Batch = std::vector<ShardState*>;

/* The shards that a session claims at once, and makes. The server's part in a claim grows with the
 * number of all shards. A session keeps what it knows of each table, 10 kB and more, until it ends.
 */
constexpr std::size_t kMaxBatch = 100;

std::vector<Batch> batches_of(std::vector<ShardState>& targets, std::size_t connections)
{
    Batch missing;
    for (ShardState& target : targets)
        if (target.state == "not done")
            missing.push_back(&target);
    const std::size_t size = std::clamp<std::size_t>(missing.size() / connections, 1, kMaxBatch);
    std::vector<Batch> batches;
    for (std::size_t i = 0; i < missing.size(); i++) {
        if (i % size == 0)
            batches.emplace_back();
        batches.back().push_back(missing[i]);
    }
    return batches;
}

/* All before the first shard is made: an error here ends the command without the list of those that
 * were. */
std::vector<std::unique_ptr<Connection>> connect(const Server& home, const std::string& owner,
                                                 std::size_t count)
{
    try {
        return at_once(count, [&](std::size_t) {
            auto connection = std::make_unique<Connection>(home.dsn());
            begin_session(*connection, owner, "");
            return connection;
        });
    } catch (const ServerError& error) {
        throw Failure(error.what() + std::string("\nNothing was made."));
    } catch (const Failure& error) {
        const std::string fewer = "--jobs " + std::to_string(count) + " opens " +
                                  count_of(count, "connection") +
                                  " beside that of the command, and a smaller number opens fewer. ";
        throw Failure(error.what() + ("\nHINT:  " + (count > 1 ? fewer : "")) +
                      "Nothing was made.");
    }
}

/* A number that is taken is an error before any work, and snowflake_create_shard() of the same
 * number or name waits until the session ends. */
void claim(Connection& connection, const Batch& batch)
{
    Shards shards;
    for (const ShardState* target : batch)
        shards.push_back(target->shard);
    connection.query(claim_sql(connection, shards));
}

bool has_claim(Connection& connection, const Batch& batch)
{
    try {
        claim(connection, batch);
        return true;
    } catch (const ServerError&) {
        return false;
    }
}

/* One message for the whole transaction: the server stops at the first error, and a killed command
 * leaves no half of a shard. If the connection is lost during COMMIT, the shard is "failed" here
 * but may be there: the same command finds it then, and compares it. The schema gets its name last,
 * because the dump and the other statements name the objects by the copy's schema. */
void make(Connection& connection, const Shard& shard, const Recipe& recipe,
          const std::string& owner)
{
    in_session(connection, owner, [&] {
        make_definition(connection, {recipe.schema},
                        recipe.definition + unmark(recipe.renumbering, shard) + recipe.names);
        rename_schema(connection, recipe.schema, shard.schema);
    });
}

/* A recipe with its connections, one after the other. */
class Worker
{
public:
    /* has_failed: any of the workers, because the next shards would fail, too. */
    Worker(std::unique_ptr<Connection> connection, const Recipe& recipe, const std::string& owner,
           std::atomic<bool>& has_failed)
        : connection_(std::move(connection)), recipe_(recipe), owner_(owner),
          has_failed_(has_failed)
    {
    }

    /* If one of them cannot be claimed, each is claimed by itself: those before it are made. */
    void make_all(const Batch& batch, Progress& progress)
    {
        const bool is_claimed = has_claim(*connection_, batch);
        for (ShardState* target : batch) {
            if (has_failed_)
                return;
            try {
                if (!is_claimed)
                    claim(*connection_, {target});
                make(*connection_, target->shard, recipe_, owner_);
                target->state = "made";
            } catch (const ServerError& error) {
                fail_to_make(*target, error);
            }
            progress.step();
        }
    }

    /* A new session with the server that has answered. The old one ends first: a role can be
     * limited to so many. */
    void reconnect()
    {
        const std::string dsn = connection_->dsn_of_server();
        connection_.reset();
        connection_ = std::make_unique<Connection>(dsn);
    }

    void fail(ShardState& target, const Failure& error)
    {
        target.state = "failed";
        target.error = error.what();
        has_failed_ = true;
    }

    /* Where the template is, the owner has made the copy. */
    void fail_to_make(ShardState& target, const ServerError& error)
    {
        fail(target, error);
        if (error.sqlstate == kInsufficientPrivilege)
            target.error += "\nHINT:  Role " + visible(owner_) +
                            ", which owns the template, has this right on the template's server: "
                            "grant it here, too, if the role may have it.";
    }

private:
    std::unique_ptr<Connection> connection_;
    const Recipe& recipe_;
    const std::string& owner_;
    std::atomic<bool>& has_failed_;
};

} // namespace

void make_clones(const Server& home, const std::vector<Recipe>& recipes, const std::string& owner,
                 std::vector<ShardState>& targets)
{
    auto connections = connect(home, owner, recipes.size());
    const std::vector<Batch> batches = batches_of(targets, recipes.size());
    Progress progress("clone");
    for (const Batch& batch : batches)
        progress.expect(batch.size());
    std::atomic<std::size_t> next{0};
    std::atomic<bool> has_failed{false};
    at_once(recipes.size(), [&](std::size_t i) {
        Worker worker(std::move(connections[i]), recipes[i], owner, has_failed);
        for (std::size_t at = next++, first = at; !has_failed && at < batches.size(); at = next++)
            try {
                if (at != first)
                    worker.reconnect();
                worker.make_all(batches[at], progress);
            } catch (const Failure& error) {
                worker.fail(*batches[at].front(), error);
            }
        return true;
    });
}
