#include "routers/routing.h"

#include <algorithm>
#include <filesystem>
#include <utility>

#include "base/output.h"
#include "base/quoting.h"
#include "postgres/dsn.h"
#include "postgres/settings.h"

namespace
{

std::vector<Pooler> kept_poolers(Connection& source, const std::string& schema)
{
    /* A row for each alias; the rows of one PgBouncer follow each other. */
    const Result poolers = source.query("SELECT console, file, command, unnest(aliases) FROM " +
                                        schema + ".poolers ORDER BY number");
    std::vector<Pooler> kept;
    for (int i = 0; i < poolers.rows(); i++) {
        if (kept.empty() || kept.back().console != poolers.text(i, 0) ||
            kept.back().file != poolers.text(i, 1) || kept.back().command != poolers.text(i, 2))
            kept.push_back({poolers.text(i, 0), poolers.text(i, 1), poolers.text(i, 2), {}});
        kept.back().aliases.insert(poolers.text(i, 3));
    }
    return kept;
}

} // namespace

std::string options_with_commands(const std::vector<Pooler>& poolers)
{
    if (std::all_of(poolers.begin(), poolers.end(),
                    [](const Pooler& pooler) { return pooler.command.empty(); }))
        return "";
    std::string options;
    for (const Pooler& pooler : poolers)
        options += (options.empty() ? "--pgbouncer " : " --pgbouncer ") +
                   shell_quoted(without_secrets(pooler.console)) + " --config " +
                   shell_quoted(pooler.file) + " --config-command " +
                   (pooler.command.empty() ? "''" : shell_quoted(pooler.command));
    return options;
}

Aliases aliases_of(const std::string& pattern, const ShardSet& shards, bool is_only)
{
    if (is_only && pattern.find("{}") == std::string::npos)
        return {pattern};
    Aliases aliases;
    for (const int shard : shards)
        aliases.insert(schema_name(pattern, shard));
    return aliases;
}

Routing given_routing(const CutoverOptions& options, const Aliases& aliases)
{
    if (options.pgbouncer.size() != options.config.size())
        throw UsageError("--pgbouncer is given " + count_of(options.pgbouncer.size(), "time") +
                         ", and --config " + count_of(options.config.size(), "time") +
                         ": each PgBouncer takes both");
    const std::vector<std::string>& commands = options.config_command;
    if (!commands.empty() && commands.size() != options.pgbouncer.size())
        throw UsageError("--pgbouncer is given " + count_of(options.pgbouncer.size(), "time") +
                         ", and --config-command " + count_of(commands.size(), "time") +
                         ": give one for each PgBouncer, '' for a file of this machine");
    Routing routing = {{}, options.switch_command};
    for (std::size_t i = 0; i < options.pgbouncer.size(); i++) {
        const std::string command = commands.empty() ? "" : commands[i];
        const std::string& file = options.config[i];
        if (!command.empty() && file.front() != '/')
            throw UsageError("--config " + file +
                             " needs the whole path, because it is that of "
                             "another machine");
        /* The whole path is kept: --resume may be run in another folder. */
        routing.poolers.push_back(
            {options.pgbouncer[i], std::filesystem::absolute(file), command, aliases});
    }
    return routing;
}

void add_kept_routing(Connection& source, const std::string& schema, bool leads, bool runs_command,
                      Routing& given)
{
    if (given.poolers.empty()) {
        given.poolers = kept_poolers(source, schema);
        const std::string again = options_with_commands(given.poolers);
        if (leads && !again.empty())
            throw UsageError("the command was begun with a --config-command, which --resume does "
                             "not take from the database.\nHINT:  Give these again if the commands "
                             "are yours: " +
                             again);
        for (Pooler& pooler : given.poolers)
            if (!std::exchange(pooler.command, "").empty())
                pooler.file = "";
    }
    if (!runs_command || !given.command.empty())
        return;
    const Result kept = source.query("SELECT command FROM " + schema + ".switch_command");
    if (kept.rows() > 0)
        throw UsageError("the command was begun with a --switch-command, which --resume does not "
                         "take from the database.\nHINT:  Give it again if it is yours: "
                         "--switch-command " +
                         shell_quoted(kept.text(0, 0)));
}

void keep_routing(Connection& source, const std::string& schema, const Routing& routing)
{
    hide_statements(source);
    /* Default privileges may let others read any new table; row security without a policy does not.
     * The owner and superusers pass it. The tables are made anew, because options that are given
     * again replace the kept ones. */
    const std::string poolers = schema + ".poolers";
    const std::string command = schema + ".switch_command";
    source.run("DROP TABLE IF EXISTS " + poolers + ", " + command + "; CREATE TABLE " + poolers +
               R"( (
            number bigint NOT NULL,
            console text NOT NULL,
            file text NOT NULL,
            command text NOT NULL,
            aliases text[] NOT NULL);
        CREATE TABLE )" +
               command + " (command text NOT NULL); ALTER TABLE " + poolers +
               " ENABLE ROW LEVEL SECURITY; ALTER TABLE " + command + " ENABLE ROW LEVEL SECURITY");
    std::size_t number = 0; /* no sequence: one of FOR ALL SEQUENCES would be published */
    for (const Pooler& pooler : routing.poolers) {
        std::vector<std::string> values = {std::to_string(++number), pooler.console, pooler.file,
                                           pooler.command};
        std::string places;
        for (const std::string& alias : pooler.aliases) {
            values.push_back(alias);
            places += (places.empty() ? "$" : ", $") + std::to_string(values.size());
        }
        source.query("INSERT INTO " + poolers + " VALUES ($1, $2, $3, $4, ARRAY[" + places +
                         "]::text[])",
                     values);
    }
    if (!routing.command.empty())
        source.query("INSERT INTO " + command + " VALUES ($1)", {routing.command});
}
