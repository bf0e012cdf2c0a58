#include "move/routing.h"

#include <filesystem>

#include "move/state.h"
#include "output.h"

namespace
{

/* A word for the shell. */
std::string shell_quoted(const std::string& text)
{
    std::string quoted;
    for (const char c : text)
        quoted += c == '\'' ? "'\\''" : std::string(1, c);
    return "'" + quoted + "'";
}

Routing given_routing(const Options& options, const Move& move)
{
    if (options.pgbouncer.size() != options.config.size())
        throw UsageError("--pgbouncer is given " + count_of(options.pgbouncer.size(), "time") +
                         ", and --config " + count_of(options.config.size(), "time") +
                         ": each PgBouncer takes both");
    Routing routing = {{}, options.switch_command};
    const std::string alias = schema_name(options.alias, move.shard.number);
    for (std::size_t i = 0; i < options.pgbouncer.size(); i++)
        routing.poolers.push_back(
            {options.pgbouncer[i], std::filesystem::absolute(options.config[i]), alias});
    return routing;
}

std::vector<Pooler> kept_poolers(Connection& source, const Move& move)
{
    const Result poolers =
        source.query(move.sql("SELECT console, file, alias FROM @move@.poolers ORDER BY number"));
    std::vector<Pooler> kept;
    for (int i = 0; i < poolers.rows(); i++)
        kept.push_back({poolers.text(i, 0), poolers.text(i, 1), poolers.text(i, 2)});
    return kept;
}

void require_command(Connection& source, const Move& move)
{
    const Result kept = source.query(move.sql("SELECT command FROM @move@.switch_command"));
    if (kept.rows() > 0)
        throw UsageError("the move was begun with a --switch-command, which --resume does not take "
                         "from the database.\nHINT:  Give it again if it is yours: "
                         "--switch-command " +
                         shell_quoted(kept.text(0, 0)));
}

} // namespace

Routing choose_routing(const Options& options, Connection& source, const Move& move)
{
    Routing given = given_routing(options, move);
    const auto state = read_state(source, move);
    if (!state || !state->is_of_source())
        return given;
    if (given.poolers.empty())
        given.poolers = kept_poolers(source, move);
    if ((options.is_resumed || options.is_undone) && given.command.empty() &&
        state->step != Step::moved)
        require_command(source, move);
    return given;
}

void keep_routing(Connection& source, const Move& move, const Routing& routing)
{
    hide_statements(source);
    /* Default privileges may let others read any new table; row security without a policy does
     * not. */
    source.run(move.sql(R"(
        DROP TABLE IF EXISTS @move@.poolers, @move@.switch_command;
        CREATE TABLE @move@.poolers (
            number integer GENERATED ALWAYS AS IDENTITY,
            console text NOT NULL,
            file text NOT NULL,
            alias text NOT NULL);
        CREATE TABLE @move@.switch_command (command text NOT NULL);
        ALTER TABLE @move@.poolers ENABLE ROW LEVEL SECURITY;
        ALTER TABLE @move@.switch_command ENABLE ROW LEVEL SECURITY)"));
    for (const Pooler& pooler : routing.poolers)
        source.query(move.sql("INSERT INTO @move@.poolers (console, file, alias) "
                              "VALUES ($1, $2, $3)"),
                     {pooler.console, pooler.file, pooler.alias});
    if (!routing.command.empty())
        source.query(move.sql("INSERT INTO @move@.switch_command VALUES ($1)"), {routing.command});
}
