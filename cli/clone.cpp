/* snowflake-shard clone: new shards like a template.
 *
 * A copy of the template is made (see copy.h) and dumped. Each clone is the text of that dump, run
 * as it is: a schema with the copy's name, which gets its own number and is renamed in the same
 * transaction. Each connection has a copy's name of its own, so connections do not wait for each
 * other. The copy has another number than the template, too: a clone that would differ from the
 * template is found before there is one. */

#include <algorithm>
#include <atomic>

#include "definition.h"
#include "dump.h"
#include "marks.h"
#include "output.h"
#include "verbs.h"

namespace
{

std::vector<ShardState> find_targets(Connection& connection, const Options& options)
{
    std::vector<ShardState> targets;
    for (const int number : parse_shards(options.shards)) {
        const std::string schema = schema_name(options.schema_pattern, number);
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

/* A shard or a sequence that is computed would stay the template's in every clone, and two schemas
 * would make the same IDs. */
void require_constant_calls(Connection& connection, const Shard& origin)
{
    const Result calls = connection.query(
        R"(SELECT string_agg(DISTINCT E'\n    ' || i.identity, '')
           FROM snowflake_internal.calls() AS k, pg_identify_object(classid, objid, objsubid) AS i
           WHERE k.schema = $1::regnamespace AND is_direct
               AND (seq IS NULL OR k.shard IS NULL AND seq <> $2::regclass))",
        {origin.quoted, extension_schema(connection) + ".snowflake_id_seq"});
    if (!calls.is_null(0, 0))
        throw Failure("the shard or the sequence is no constant, and would stay that of schema " +
                      origin.schema + " in every clone:" + calls.text(0, 0) +
                      "\nHINT:  Write them as literals: snowflake_next_id(5, 'schema.sequence').");
}

void require_no_extension(Connection& connection, const Shard& origin)
{
    const Result extension = connection.query(R"(
        SELECT extname,
               CASE WHEN extrelocatable
                    THEN format('CREATE SCHEMA extensions; ALTER EXTENSION %I SET SCHEMA extensions;', extname)
                    ELSE format('The extension cannot be moved. Move the shard out of schema %I, with '
                                'ALTER TABLE ... SET SCHEMA and the like.', nspname) END
        FROM pg_extension JOIN pg_namespace AS n ON n.oid = extnamespace
        WHERE nspname = $1 ORDER BY extrelocatable, extname)",
                                              {origin.schema});
    if (extension.rows() > 0)
        throw Failure("extension " + extension.text(0, 0) + " is installed in schema " +
                      origin.schema +
                      ", and clones cannot have it\nHINT:  " + extension.text(0, 1));
}

/* What a connection makes its clones of. */
struct Recipe {
    std::string schema; /* that the dump makes */
    std::string dump;
    std::string renumbering;
};

/* Differences between the template and its copy would be those of every clone. */
void require_equal(const std::vector<Difference>& differences, const Shard& origin)
{
    std::string statements;
    for (const auto& [is_missing, object, sql] : differences)
        statements += (is_missing ? "\n-- template: " : "\n-- clone: ") + object + "\n" + sql;
    if (!statements.empty())
        throw Failure("clones would differ from schema " + origin.schema +
                      "; default privileges or event triggers can cause that, or the shard's "
                      "number where clone cannot change it." +
                      statements);
}

/* The copy has the number of a shard that is to be made: it is not in use. */
std::vector<Recipe> make_recipes(Connection& connection, const Options& options,
                                 const Shard& origin, Definition& definition,
                                 const std::vector<ShardState>& targets)
{
    const auto missing = std::find_if(targets.begin(), targets.end(), [](const ShardState& target) {
        return target.state == "not done";
    });
    Copy copy(options.dsn, origin, definition.dump());
    copy.renumber(missing == targets.end() ? origin.number : missing->shard.number);
    std::vector<Recipe> recipes;
    for (int i = 1; i <= options.jobs; i++) {
        copy.rename(i);
        const std::string& name = copy.shard().schema;
        recipes.push_back({name, dump_schemas(connection, {name}), copy.renumbering()});
        if (i == 1)
            require_equal(definition.compare_copy(connection, copy.shard(), recipes[0].dump),
                          origin);
    }
    return recipes;
}

/* Names the shards that are there and are not as the template. */
void check_present(Connection& connection, Definition& definition,
                   const std::vector<ShardState>& targets)
{
    std::vector<Shard> present;
    for (const ShardState& target : targets)
        if (target.state == "there already")
            present.push_back(target.shard);
    std::string names;
    for (const auto& [shard, differences] : definition.find_different(connection, present))
        names += "\n    " + shard.schema + ": " + differences[0].object;
    if (!names.empty())
        throw Failure("there already, and not as the template:" + names +
                      "\nHINT:  snowflake-shard diff shows the statements. Nothing was made.");
}

void make(Connection& connection, ShardState& target, const std::string& sql)
{
    try {
        connection.run("BEGIN ISOLATION LEVEL READ COMMITTED;" + sql + "COMMIT");
        target.state = "made";
    } catch (const ServerError& error) {
        connection.rollback();
        target.state = "failed";
        target.error = error.what();
    }
}

/* Makes the shards that are not there, over several connections, until one fails. */
void make_all(const Options& options, const std::vector<Recipe>& recipes,
              std::vector<ShardState>& targets)
{
    Progress progress("clone", targets.size());
    std::atomic<std::size_t> next{0};
    std::atomic<std::size_t> next_recipe{0};
    const std::vector<std::string> connections(recipes.size(), options.dsn);
    on_all_servers(connections, [&](Connection& connection) {
        const Recipe& recipe = recipes[next_recipe++];
        for (std::size_t i = 0; (i = next++) < targets.size(); progress.step()) {
            ShardState& target = targets[i];
            const auto& [number, schema, quoted] = target.shard;
            if (target.state == "not done")
                make(connection, target,
                     "SELECT snowflake_internal.claim_shard(" + std::to_string(number) + ", " +
                         connection.literal(schema) + ");" + recipe.dump +
                         unmark(recipe.renumbering, target.shard) + "ALTER SCHEMA " +
                         recipe.schema + " RENAME TO " + quoted + ";");
            if (target.state == "failed")
                next = targets.size();
        }
        return 0;
    });
}

} // namespace

int clone_shards(const Options& options)
{
    Connection connection(options.dsn);
    const Shard origin = find_shard(connection, options.template_schema);
    require_no_extension(connection, origin);
    std::vector<ShardState> targets = find_targets(connection, options);
    require_constant_calls(connection, origin);
    Definition definition(connection, origin);
    for (const std::string& function : definition.functions_naming_template())
        warn("the text of " + function + " names schema " + origin.schema +
             ", and does so in every clone");
    const auto recipes = make_recipes(connection, options, origin, definition, targets);
    check_present(connection, definition, targets);
    make_all(options, recipes, targets);
    return print_states(targets, options.json);
}
