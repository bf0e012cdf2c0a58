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

#include <algorithm>
#include <atomic>
#include <iostream>
#include <thread>

#include "catalog.h"
#include "definition.h"
#include "output.h"
#include "process.h"
#include "verbs.h"

namespace
{

const char* const kScratch = "snowflake_clone_scratch";
const char* const kAway = "snowflake_clone_away";

struct Target {
    Shard shard;
    std::string state; /* "" to be made */
    std::string error;
};

/* insta{} and 5 are insta5. */
std::string schema_name(const std::string& pattern, int shard)
{
    const std::size_t at = pattern.find("{}");
    return at == std::string::npos
               ? pattern
               : pattern.substr(0, at) + std::to_string(shard) + pattern.substr(at + 2);
}

std::vector<Target> find_targets(Connection& connection, const CloneOptions& options)
{
    const ShardSet shards = parse_shards(options.shards);
    if (shards.size() > 1 && options.schema_pattern.find("{}") == std::string::npos)
        throw UsageError("--schema needs {} in the place of the shard's number: insta{}");
    std::string values;
    for (const int shard : shards) {
        const std::string schema = schema_name(options.schema_pattern, shard);
        if (schema.size() > 63)
            throw UsageError("schema name " + schema + " is longer than 63 bytes");
        values += (values.empty() ? "(" : ", (") + std::to_string(shard) + ", " +
                  connection.literal(schema) + ")";
    }
    const Result rows =
        connection.query("SELECT v.shard, v.name, quote_ident(v.name), n.oid IS NOT NULL "
                         "FROM (VALUES " +
                         values +
                         ") AS v (shard, name) LEFT JOIN pg_namespace AS n ON n.nspname = v.name "
                         "ORDER BY v.shard");
    std::vector<Target> targets;
    for (int i = 0; i < rows.rows(); i++) {
        const Shard shard = {static_cast<int>(rows.number(i, 0)), rows.text(i, 1), rows.text(i, 2)};
        targets.push_back({shard, rows.flag(i, 3) ? "there already" : "", ""});
    }
    return targets;
}

/* What belongs to the template and stands in no dump of a schema. */
void warn_of_what_stays(Connection& connection, const Shard& origin, const Definition& definition)
{
    const Result rows = connection.query(
        "WITH t AS (SELECT oid FROM pg_namespace WHERE nspname = $1) "
        "SELECT format('extension %I', e.extname) FROM pg_extension AS e JOIN t ON e.extnamespace "
        "= t.oid "
        "UNION SELECT format('publication %I', p.pubname) FROM pg_publication_namespace AS n "
        "JOIN t ON n.pnnspid = t.oid JOIN pg_publication AS p ON p.oid = n.pnpubid "
        "UNION SELECT format('publication %I', p.pubname) FROM pg_publication_rel AS r "
        "JOIN pg_class AS c ON c.oid = r.prrelid JOIN t ON c.relnamespace = t.oid "
        "JOIN pg_publication AS p ON p.oid = r.prpubid "
        "UNION SELECT format('event trigger %I', v.evtname) FROM pg_event_trigger AS v "
        "JOIN pg_proc AS f ON f.oid = v.evtfoid JOIN t ON f.pronamespace = t.oid ORDER BY 1",
        {origin.schema});
    for (int i = 0; i < rows.rows(); i++)
        warn("not cloned: " + rows.text(i, 0));
    for (const std::string& function : definition.functions_naming_schema())
        warn("the text of function " + function + " names schema " + origin.schema +
             ", and does so in every clone");
}

std::string describe(const std::vector<Difference>& differences)
{
    std::string text;
    for (const Difference& difference : differences)
        text += std::string(difference.is_missing ? "\n-- missing: " : "\n-- added: ") +
                difference.object + "\n" + difference.sql;
    return text;
}

void make_scratch(Connection& connection, const Shard& origin, const Entries& dump)
{
    const std::string scratch = kScratch;
    const std::string away = kAway;
    connection.run(kDumpSettings);
    connection.run("DROP SCHEMA IF EXISTS " + scratch + " CASCADE"); /* of a run that was killed */
    try {
        connection.run("BEGIN ISOLATION LEVEL READ COMMITTED;\n"
                       "ALTER SCHEMA " +
                       origin.quoted + " RENAME TO " + away + ";\n" + sql_of(dump) +
                       "ALTER SCHEMA " + origin.quoted + " RENAME TO " + scratch +
                       ";\n"
                       "ALTER SCHEMA " +
                       away + " RENAME TO " + origin.quoted + ";\nCOMMIT");
    } catch (const ServerError& error) {
        throw Failure("the definition of schema " + origin.schema +
                      " cannot be made a second time: " + error.what());
    }
}

Definition define(Connection& connection, const Shard& origin)
{
    const Entries dump = dump_schemas(connection, {origin.schema})[origin.schema];
    /* One at a time in a database: the scratch schema has one name. */
    connection.query("SELECT pg_advisory_lock(hashtextextended('snowflake-shard clone', 0))");
    make_scratch(connection, origin, dump);
    const Shard scratch = {origin.number, kScratch, kScratch};
    const Definition definition(dump_schemas(connection, {kScratch})[kScratch], scratch,
                                origin.schema);
    connection.run(std::string("DROP SCHEMA ") + kScratch + " CASCADE");
    connection.query("SELECT pg_advisory_unlock(hashtextextended('snowflake-shard clone', 0))");

    const std::vector<Difference> differences = definition.compare(dump, origin);
    if (!differences.empty())
        throw Failure("clones of schema " + origin.schema +
                      " would differ from it; default privileges or event triggers can cause that. "
                      "The statements that are not the same:" +
                      describe(differences));
    return definition;
}

/* Materialized views with rows in the template are filled in the clones. */
std::vector<std::string> views_to_refresh(Connection& connection, const Shard& origin,
                                          const Definition& definition)
{
    std::vector<std::string> views;
    for (const std::string& view : definition.materialized_views()) {
        const Result populated =
            connection.query("SELECT c.relispopulated FROM pg_class AS c JOIN pg_namespace AS n "
                             "ON n.oid = c.relnamespace WHERE n.nspname = $1 AND c.relname = $2",
                             {origin.schema, view});
        if (populated.rows() == 1 && populated.flag(0, 0))
            views.push_back(connection.identifier(view));
    }
    return views;
}

/* Names the shards that are there and are not as the template. */
void check_present(Connection& connection, const Definition& definition,
                   const std::vector<Target>& targets)
{
    std::vector<Shard> present;
    for (const Target& target : targets)
        if (!target.state.empty())
            present.push_back(target.shard);
    std::string names;
    compare_shards(connection, definition, present,
                   [&](const Shard& shard, const std::vector<Difference>& differences) {
                       names += (names.empty() ? "" : ", ") + shard.schema + " (" +
                                differences[0].object + ")";
                   });
    if (!names.empty())
        throw Failure("there already, and not as the template: " + names +
                      "\nHINT:  snowflake-shard diff shows the statements. Nothing was made.");
}

/* The work that the connections share. */
class CloneWork
{
public:
    CloneWork(const CloneOptions& options, const Definition& definition,
              const std::vector<std::string>& views, std::vector<Target>& targets)
        : options_(options), definition_(definition), views_(views), targets_(targets),
          progress_("clone", static_cast<std::size_t>(std::count_if(
                                 targets.begin(), targets.end(),
                                 [](const Target& target) { return target.state.empty(); })))
    {
    }

    void run()
    {
        std::vector<std::thread> threads;
        for (int i = 0; i < options_.jobs; i++)
            threads.emplace_back([this] { work(); });
        for (std::thread& thread : threads)
            thread.join();
        if (!connection_error_.empty())
            throw Failure(connection_error_);
    }

private:
    void work()
    {
        try {
            Connection connection(options_.dsn);
            connection.run(kDumpSettings);
            while (!is_stopped_ && !is_interrupted()) {
                const std::size_t i = next_++;
                if (i >= targets_.size())
                    return;
                if (targets_[i].state.empty())
                    make(connection, targets_[i]);
            }
        } catch (const std::exception& error) {
            const std::lock_guard<std::mutex> lock(mutex_);
            connection_error_ = error.what();
            is_stopped_ = true;
        }
    }

    void make(Connection& connection, Target& target)
    {
        const std::string working_name =
            "snowflake_clone_" + std::to_string(connection.process_id());
        const Shard working = {target.shard.number, working_name, working_name};
        std::string sql = "BEGIN ISOLATION LEVEL READ COMMITTED;\n"
                          "SELECT snowflake_internal.claim_shard(" +
                          std::to_string(target.shard.number) + ", " +
                          connection.literal(target.shard.schema) + ");\n" +
                          sql_of(definition_.for_shard(working));
        for (const std::string& view : views_)
            sql += "REFRESH MATERIALIZED VIEW " + working_name + "." + view + ";\n";
        sql += "ALTER SCHEMA " + working_name + " RENAME TO " + target.shard.quoted + ";\nCOMMIT";
        try {
            connection.run(sql);
            target.state = "made";
        } catch (const ServerError& error) {
            connection.rollback();
            target.state = "failed";
            target.error = error.what();
            is_stopped_ = true;
        }
        progress_.step();
    }

    const CloneOptions& options_;
    const Definition& definition_;
    const std::vector<std::string>& views_;
    std::vector<Target>& targets_;
    Progress progress_;
    std::mutex mutex_;
    std::string connection_error_;
    std::atomic<std::size_t> next_{0};
    std::atomic<bool> is_stopped_{false};
};

int report(const std::vector<Target>& targets, bool json)
{
    Table table = {{"shard", "schema", "state", "error"}, {}};
    std::map<std::string, ShardSet> by_state;
    for (const Target& target : targets) {
        const std::string state = target.state.empty() ? "not made" : target.state;
        by_state[state].insert(target.shard.number);
        table.rows.push_back({std::int64_t{target.shard.number}, target.shard.schema, state,
                              target.error.empty() ? Cell() : Cell(target.error)});
        if (!target.error.empty())
            warn("shard " + std::to_string(target.shard.number) + ", schema " +
                 target.shard.schema + ": " + target.error);
    }
    if (json)
        print(table, Format::json);
    else
        for (const auto& [state, shards] : by_state)
            std::cout << count_of(shards.size(), "shard") << " " << state << ": "
                      << format_shards(shards) << "\n";
    return by_state.count("failed") + by_state.count("not made") > 0 ? kFailed : kDone;
}

} // namespace

int clone_shards(const CloneOptions& options)
{
    Connection connection(options.dsn);
    const Shard origin = find_shard(connection, options.template_schema);
    if (extension_schema(connection) == origin.quoted)
        throw Failure("the extension stands in schema " + origin.schema +
                      " itself.\nHINT:  ALTER EXTENSION snowflake SET SCHEMA ...");
    std::vector<Target> targets = find_targets(connection, options);
    const Definition definition = define(connection, origin);
    warn_of_what_stays(connection, origin, definition);
    check_present(connection, definition, targets);
    const std::vector<std::string> views = views_to_refresh(connection, origin, definition);
    CloneWork(options, definition, views, targets).run();
    return report(targets, options.json);
}
