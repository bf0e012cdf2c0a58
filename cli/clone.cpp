/* snowflake-shard clone: new shards like a template.
 *
 * pg_dump writes the template's definition, with the schema's name in it. To get text in which that
 * name can be replaced without a doubt, the template is made once more, as a scratch schema with a
 * name that stands nowhere else: in one transaction the template is renamed away, its dump is run,
 * and the two are renamed. The scratch schema's dump is what every clone is made from. Made into
 * the template's name again it must equal the template's dump; so a clone that would differ is
 * found before there is one.
 *
 * Each connection makes its clones under a name of its own, and renames them: so connections do not
 * wait for each other, and the server writes the new name as it has to be quoted. */

#include <atomic>

#include "definition.h"
#include "output.h"
#include "verbs.h"

namespace
{

const std::string kScratch = "snowflake_clone_scratch";

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

/* A pg_dump that reads the whole database, or outlived its clone, can lock the tables in another
 * order. */
void drop_scratch(Connection& connection)
{
    const std::string deadlock_detected = "40P01";
    for (int tries = 3;; tries--)
        try {
            return connection.run("DROP SCHEMA IF EXISTS " + kScratch + " CASCADE");
        } catch (const ServerError& error) {
            if (error.sqlstate != deadlock_detected || tries == 0)
                throw;
        }
}

void make_scratch(Connection& connection, const Shard& origin, const Entries& dump)
{
    const std::string away = "snowflake_clone_away";
    const auto rename = [](const std::string& from, const std::string& to) {
        return "ALTER SCHEMA " + from + " RENAME TO " + to + ";";
    };
    connection.run(kDumpSettings);
    drop_scratch(connection); /* a clone that was killed can have left it */
    try {
        connection.run("BEGIN;" + rename(origin.quoted, away) + sql_of(dump) +
                       rename(origin.quoted, kScratch) + rename(away, origin.quoted) + "COMMIT");
    } catch (const ServerError& error) {
        throw Failure("the definition of schema " + origin.schema +
                      " cannot be made a second time: " + error.what());
    }
}

Definition define(const Options& options, const Shard& origin)
{
    /* One at a time in a database: the scratch schema has one name. */
    Connection connection(options.dsn);
    connection.run("SELECT pg_advisory_lock(hashtextextended('snowflake-shard clone', 0))");
    const Entries dump = dump_schemas(connection, {origin.schema})[origin.schema];
    make_scratch(connection, origin, dump);
    Definition definition(dump_schemas(connection, {kScratch})[kScratch],
                          {origin.number, kScratch, kScratch}, origin);
    drop_scratch(connection);

    std::string statements;
    for (const Difference& difference : definition.compare(dump, origin))
        statements += (difference.is_missing ? "\n-- clone: " : "\n-- template: ") +
                      difference.object + "\n" + difference.sql;
    if (!statements.empty())
        throw Failure("clones would differ from schema " + origin.schema +
                      "; default privileges or event triggers can cause that." + statements);
    return definition;
}

/* Names the shards that are there and are not as the template. */
void check_present(Connection& connection, const Definition& definition,
                   const std::vector<ShardState>& targets)
{
    std::vector<Shard> present;
    for (const ShardState& target : targets)
        if (target.state == "there already")
            present.push_back(target.shard);
    std::string names;
    for (const auto& [shard, differences] : find_different(connection, definition, present))
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
void make_all(const Options& options, const Definition& definition,
              std::vector<ShardState>& targets)
{
    Progress progress("clone", targets.size());
    std::atomic<std::size_t> next{0};
    const std::vector<std::string> connections(static_cast<std::size_t>(options.jobs), options.dsn);
    on_all_servers(connections, [&](Connection& connection) {
        connection.run(kDumpSettings);
        const std::string name = "snowflake_clone_" + std::to_string(connection.process_id());
        for (std::size_t i = 0; (i = next++) < targets.size(); progress.step()) {
            ShardState& target = targets[i];
            const auto& [number, schema, quoted] = target.shard;
            if (target.state == "not done")
                make(connection, target,
                     "SELECT snowflake_internal.claim_shard(" + std::to_string(number) + ", " +
                         connection.literal(schema) + ");" +
                         definition.sql_for({number, name, name}) + "ALTER SCHEMA " + name +
                         " RENAME TO " + quoted + ";");
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
    if (extension_schema(connection) == origin.quoted)
        throw Failure("the extension itself stands in schema " + origin.schema +
                      "\nHINT:  ALTER EXTENSION snowflake SET SCHEMA another schema.");
    std::vector<ShardState> targets = find_targets(connection, options);
    require_constant_calls(connection, origin);
    const Definition definition = define(options, origin);
    for (const std::string& function : definition.functions_naming_template())
        warn("the text of " + function + " names schema " + origin.schema +
             ", and does so in every clone");
    check_present(connection, definition, targets);
    make_all(options, definition, targets);
    return print_states(targets, options.json);
}
