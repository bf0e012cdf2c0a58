/* snowflake-shard clone: new shards like a template.
 *
 * A copy of the template is made (see copy.h) and dumped. Each clone is the text of that dump, run
 * as it is (see clones.h). Each connection has a copy's name of its own, so none waits for another.
 */

#include <algorithm>
#include <map>

#include "base/output.h"
#include "base/quoting.h"
#include "base/shard_states.h"
#include "definition/copy.h"
#include "definition/definition.h"
#include "fleet/children.h"
#include "fleet/in_transit.h"
#include "fleet/placement.h"
#include "postgres/drop_schemas.h"
#include "postgres/dump.h"
#include "postgres/extension.h"
#include "postgres/identity.h"
#include "postgres/session.h"
#include "postgres/too_few.h"
#include "replication/needed.h"
#include "replication/trial.h"
#include "verbs/clones.h"
#include "verbs/counted_keys.h"
#include "verbs/verbs.h"

namespace
{

/* The shards that are asked for. One whose schema is there is "there already" at first:
 * check_present() finds a schema that is no shard, or has another number. quote_ident() of the
 * server, because its version decides which words are reserved. */
std::vector<ShardState> find_targets(Connection& connection, const CloneOptions& options)
{
    std::vector<ShardState> targets;
    for (const int number : parse_shards(options.shards)) {
        const std::string schema = schema_name(options.schema_pattern, number);
        /* The server would cut it off at NAMEDATALEN - 1 bytes, and two shards could get one
         * name. */
        if (schema.size() > 63)
            throw UsageError("schema name " + schema + " is longer than 63 bytes");
        const Result row = connection.query(
            "SELECT quote_ident($1), EXISTS (SELECT FROM pg_namespace WHERE nspname = $1)",
            {schema});
        const Shard shard = {number, schema, row.text(0, 0)};
        targets.push_back({shard, row.flag(0, 1) ? "there already" : "not done", ""});
    }
    return targets;
}

/* Shards that are there already, on the server that gets the new ones or on another. */
struct Present {
    Connection& connection;
    std::vector<Shard> shards;
};

/* A number is looked for on the other servers, and not a name: two servers may have schemas of one
 * name, but a number on both would make the same IDs. */
void find_elsewhere(Present& present, const std::vector<Shard>& shards,
                    std::vector<ShardState>& targets)
{
    for (ShardState& target : targets)
        for (const Shard& shard : shards)
            if (shard.number == target.shard.number) {
                if (shard.schema != target.shard.schema)
                    throw Failure("shard " + std::to_string(shard.number) + " is schema " +
                                  visible(shard.schema) + " on " + present.connection.server() +
                                  ", and cannot be made as schema " + visible(target.shard.schema) +
                                  ". Nothing was made.");
                target.state = "there already";
                present.shards.push_back(shard);
            }
}

/* The server that gets the shards comes first. There find_targets() has looked for the names; if
 * another schema of it has one of the numbers, claim_shard() is an error. All other servers are
 * looked through for the numbers. */
std::vector<Present> find_present(ServerSet& servers, const ShardsOfServers& shards, Server& home,
                                  std::vector<ShardState>& targets)
{
    std::vector<Present> present = {{home.connection, {}}};
    for (const ShardState& target : targets)
        if (target.state == "there already")
            present[0].shards.push_back(target.shard);
    for (std::size_t i = 0; i < servers.size(); i++)
        if (!is_same_server(servers[i].connection, home.connection)) {
            present.push_back({servers[i].connection, {}});
            find_elsewhere(present.back(), shards[i], targets);
        }
    return present;
}

/* A shard or a sequence that is computed would stay the template's in every clone, and two schemas
 * would make the same IDs. Calls that go through a function are left out, because the function is
 * in the list itself. snowflake_next_id() without arguments draws from the sequence of the
 * extension, and takes its shard from the setting snowflake.shard: nothing of it is the
 * template's. */
void require_constant_calls(Connection& connection, const Shard& origin)
{
    const Result calls = connection.query(
        R"(SELECT string_agg(DISTINCT E'\n    ' || i.identity, '')
           FROM snowflake_internal.calls() AS k, pg_identify_object(classid, objid, objsubid) AS i
           WHERE k.schema = $1::regnamespace AND is_direct
               AND (seq IS NULL OR k.shard IS NULL AND seq <> snowflake_internal.id_seq()))",
        {origin.quoted});
    if (!calls.is_null(0, 0))
        throw Failure("the shard or the sequence is no constant, and would stay that of schema " +
                      visible(origin.schema) + " in every clone:" + calls.text(0, 0) +
                      "\nHINT:  Write them as literals: snowflake_next_id(5, 'schema.sequence').");
}

std::string lines_of(const Obstacles& obstacles)
{
    std::string lines;
    for (const Obstacle& found : obstacles)
        lines += "\n    " + found.problem + "\n    HINT:  " + found.hint;
    return lines;
}

/* A database has an extension once, so its objects cannot be in every clone. */
void require_no_extension(Connection& connection, const Shard& origin)
{
    const Obstacles found = find_extensions_in(connection, sql_array({origin.quoted}));
    if (!found.empty())
        throw Failure("clones of schema " + visible(origin.schema) +
                      " cannot have objects of extensions:" + lines_of(found));
}

void require_no_outside_children(Connection& connection, const Shard& origin, const Shards& all)
{
    for (const OutsideChildren& found : find_outside_children(connection, {origin}, all))
        throw Failure(connection.server() + ": " + found.problem + "\nHINT:  " + found.hint);
}

/* The needs of the shards on another server. */
void require_needed(Connection& source, Connection& home, const Shard& origin)
{
    const Obstacles found = find_needed(source, home, {origin});
    if (!found.empty())
        throw Failure(home.server() + ": clones of schema " + visible(origin.schema) +
                      " cannot be made:" + lines_of(found));
}

/* Told before pg_dump reads the template. */
void require_session(Connection& connection, const Shard& origin)
{
    for (const auto& [schema, problem] : find_session_problems(connection, {origin}))
        throw Failure(connection.server() + ": " + problem);
}

/* That of the copy ends before the others begin. */
void require_workers(Connection& source, Connection& home, int jobs)
{
    find_too_few(source, {}, {}, {1, "clone takes 1 for a session of the owner"}).raise_first();
    const std::string number = std::to_string(jobs);
    find_too_few(home, {}, {},
                 {static_cast<std::size_t>(jobs),
                  "--jobs " + number + " takes " + number + " for sessions of the owner"})
        .raise_first();
}

/* Differences between the template and its copy would be those of every clone. */
void require_equal(const std::vector<Difference>& differences, const Shard& origin)
{
    std::string statements;
    for (const auto& [is_missing, object, sql] : differences)
        statements += (is_missing ? "\n-- template: " : "\n-- clone: ") + object + "\n" + sql;
    if (!statements.empty())
        throw Failure("clones would differ from schema " + visible(origin.schema) +
                      "; default privileges or event triggers can cause that, or the shard's "
                      "number where clone cannot change it." +
                      statements);
}

/* The copy has the number of a shard that is to be made: it is not in use. A number in a place that
 * clone does not change then shows as a difference from the template, and is found while there is
 * no clone. It is compared before its functions are renamed. The copies are the same but for their
 * names. The copy is dropped on return, before the first clone: each dump makes a schema of its
 * name. */
std::vector<Recipe> make_recipes(Server& server, int count, const Shard& origin,
                                 Definition& definition, const std::vector<ShardState>& targets)
{
    const auto missing = std::find_if(targets.begin(), targets.end(), [](const ShardState& target) {
        return target.state == "not done";
    });
    Copy copy(server.dsn(), origin, definition);
    copy.renumber(missing == targets.end() ? origin.number : missing->shard.number);
    const auto dump = [&] { return Archive(server.connection, {copy.shard().schema}); };
    require_equal(definition.compare_copy(server.connection, copy.shard(), dump().text()), origin);
    copy.rename_functions();
    std::vector<Recipe> recipes;
    for (int i = 1; i <= count; i++) {
        copy.rename(i);
        recipes.push_back({copy.shard().schema, dump().definition(), copy.renumbering(),
                           copy.names_of_functions()});
    }
    return recipes;
}

/* The server names the first right that its owner lacks. */
[[noreturn]] void fail_to_copy(Connection& source, const Definition& definition,
                               const ServerError& error)
{
    throw Failure(error.what() + (error.sqlstate == kInsufficientPrivilege
                                      ? lines_of(try_items(source, definition.archive(), true))
                                      : ""));
}

/* Names the shards that are there and are not as the template. After make_recipes(), because the
 * comparison with the copy notes how the server writes an expression after a restore: a clone that
 * was made earlier is written in that way. */
void check_present(const std::vector<Present>& present, const Definition& definition)
{
    std::string names;
    Progress progress("compare");
    for (const auto& [connection, shards] : present) {
        progress.expect(shards.size());
        const Differences found = definition.find_different(connection, shards, progress);
        if (!found.errors.empty())
            throw Failure(found.errors.begin()->first);
        for (const auto& [shard, differences] : found.shards)
            names += "\n    " + visible(shard.schema) + ": " + differences[0].object;
    }
    if (!names.empty())
        throw Failure("there already, and not as the template:" + names +
                      "\nHINT:  snowflake-shard diff shows the statements. Nothing was made.");
}

/* A schema that a move or a split has to do with has their triggers, also after the end: a copy of
 * it would have them, and call their functions, and a clone of its name is no clone. */
void require_not_in_transit(Connection& connection, const std::vector<std::string>& schemas)
{
    for (const InTransit& one : read_in_transit(connection))
        if (std::find(schemas.begin(), schemas.end(), one.shard.schema) != schemas.end())
            throw Failure(describe(one) + " Nothing was made.");
}

/* The errors of a claim, as far as the catalogue shows them, for --dry-run: a number that another
 * schema has, and a schema that is there and is not that shard. */
void require_free(Connection& home, const std::vector<ShardState>& targets)
{
    std::map<int, std::string> schemas;
    for (const Shard& shard : read_shards(home))
        schemas[shard.number] = shard.schema;
    for (const ShardState& target : targets) {
        const Shard& shard = target.shard;
        const auto found = schemas.find(shard.number);
        if (found != schemas.end() && found->second != shard.schema)
            throw Failure("shard " + std::to_string(shard.number) + " is schema " +
                          visible(found->second) + " on " + home.server() +
                          ", and cannot be made as schema " + visible(shard.schema));
        if (found == schemas.end() && target.state == "there already")
            throw Failure("schema " + visible(shard.schema) + " is there already on " +
                          home.server() + ", and is not shard " + std::to_string(shard.number));
    }
}

void require_template(Connection& source, const Shard& origin, const Shards& shards)
{
    require_not_in_transit(source, {origin.schema});
    require_no_extension(source, origin);
    require_no_outside_children(source, origin, shards);
    require_session(source, origin);
    require_constant_calls(source, origin);
}

int print_as_if_made(ServerSet& servers, Server& home, std::vector<ShardState> targets, bool json)
{
    require_free(home.connection, targets);
    for (ShardState& target : targets)
        if (target.state == "not done")
            target.state = "to be made";
    return servers.exit_code(print_states(targets, json));
}

} // namespace

int clone_shards(const CloneOptions& options)
{
    /* The server of the template is written to, also with --to: the copy is made there. */
    ServerSet servers(options.dsns, Access::writes, options.keep_going);
    const ShardsOfServers shards = read_shards(servers);
    const auto& [index, origin] = find_template(servers, shards, options.template_schema);
    Server& source = servers[index];
    std::optional<Server> other;
    if (!options.to.empty())
        other.emplace(connect_to(options.to, Access::writes));
    require_installed(other ? other->connection : source.connection);
    Server& home = other ? *other : source;
    require_template(source.connection, origin, shards[index]);
    std::vector<ShardState> targets = find_targets(home.connection, options);
    std::vector<std::string> names;
    for (const ShardState& target : targets)
        names.push_back(target.shard.schema);
    require_not_in_transit(home.connection, names);
    const std::vector<Present> present = find_present(servers, shards, home, targets);
    if (!is_same_server(source.connection, home.connection))
        require_needed(source.connection, home.connection, origin);
    require_workers(source.connection, home.connection, options.jobs);
    /* After all checks that only read the catalogue: from here on pg_dump runs. */
    Definition definition(source.connection, origin);
    for (const std::string& function : definition.functions_naming_template())
        warn("the text of " + function + " names schema " + visible(origin.schema) +
             ", and does so in every clone");
    warn_of(find_counted_keys(source.connection, {origin}));
    if (options.is_dry_run)
        return print_as_if_made(servers, home, targets, options.json);
    std::vector<Recipe> recipes;
    try {
        recipes = make_recipes(source, options.jobs, origin, definition, targets);
    } catch (const ServerError& error) {
        fail_to_copy(source.connection, definition, error);
    }
    check_present(present, definition);
    make_clones(home, recipes, definition.owner(), targets);
    return servers.exit_code(print_states(targets, options.json));
}
