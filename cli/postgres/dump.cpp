#include "postgres/dump.h"

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <fstream>
#include <sstream>

#include <sys/mman.h>
#include <unistd.h>

#include "postgres/process.h"
#include "sql/sql.h"

namespace
{

/* pg_dump's settings without those that an older server does not know, such as transaction_timeout.
 */
const std::string kSettings = R"(
SET client_min_messages = error; SET check_function_bodies = false; SET row_security = off;
SET xmloption = content; SET standard_conforming_strings = on; SET search_path = '';
SET default_tablespace = ''; SET default_table_access_method = heap;
)";

/* The statements. The head and the end hold settings and nothing that a user has written, but
 * \restrict and \unrestrict, which are commands of psql. \restrict is written since the minor
 * releases of August 2025. */
std::string without_frame(const std::string& text)
{
    /* The first of the one and the last of the other: a body or a comment can hold the same lines,
     * but only between the two. */
    const std::string last_setting = "\nSET row_security = off;\n";
    const std::size_t head = text.find(last_setting);
    const std::size_t end = text.rfind("\n--\n-- PostgreSQL database dump complete\n");
    if (head == std::string::npos || end == std::string::npos)
        throw Failure("pg_dump has written something that is no dump");
    const std::size_t begin = head + last_setting.size();
    return begin < end ? text.substr(begin, end - begin) + "\n" : "";
}

std::string packaged(const std::string& version)
{
    return "Debian: package postgresql-client-" + version + ", PATH=/usr/lib/postgresql/" +
           version + "/bin:$PATH";
}

std::string path_for(const Connection& connection, const std::string& name)
{
    find_old_program(connection, name).raise_first();
    return find_program(name, connection.version()).path;
}

/* pg_dump's own message does not name the server. The replay of a standby can cancel its
 * statements, and says so in the language of lc_messages. */
std::string run_pg_dump(const Connection& connection, const std::vector<std::string>& options)
{
    const std::string path = path_for(connection, "pg_dump");
    for (int tries = 1;; tries++)
        try {
            return run_program(path, options, connection.password());
        } catch (const Failure& error) {
            const std::string text = error.what();
            if (tries == kReplayTries ||
                text.find("due to conflict with recovery") == std::string::npos)
                throw Failure(connection.server() + ": " + text);
        }
}

/* Minor releases of 15 and 17, such as 15.20, keep a number of their own in an option of each
 * column. A pg_dump that does not know it writes it, another server refuses it, and no two tables
 * would be equal. So is a function refused whose body has such a text. */
std::string without_numbers(const Connection& connection, std::string dump)
{
    if (dump.find(" SET (pg_attver=") == std::string::npos)
        return dump;
    const Program program = find_program("pg_dump", connection.version());
    const std::string needed = std::to_string(connection.version() / 10000);
    throw Failure(connection.server() + ": " + program.path + " of version " + program.version +
                  " writes the option pg_attver, which this server keeps for itself in each column"
                  "\nHINT:  Put the folder of a pg_dump of version " +
                  needed + " into PATH. " + packaged(needed));
}

std::vector<std::string> dump_options(const Connection& connection,
                                      const std::vector<std::string>& schemas)
{
    /* The text is run by a Connection, whose client_encoding is always UTF8. From SQL_ASCII nothing
     * is converted: UTF8 would only refuse names of other shards, because pg_dump reads all. */
    std::vector<std::string> options = {
        std::string("--encoding=") + (connection.is_ascii() ? "SQL_ASCII" : "UTF8"),
        "--no-publications", "-d", connection.dsn_without_password()};
    for (const std::string& schema : schemas) /* a quoted pattern matches the name itself */
        options.push_back("--schema=" + connection.identifier(schema));
    return options;
}

} // namespace

Obstacles find_old_program(const Connection& connection, const std::string& name)
{
    const Program program = find_program(name, connection.version());
    if (program.is_for(connection.version()))
        return {};
    const std::string needed = std::to_string(connection.version() / 10000);
    return {{connection.server(),
             (program.version.empty() ? "no " + name + " runs here"
                                      : program.path + " is of version " + program.version) +
                 ", and the server is of version " + needed,
             "Put the folder of a " + name + " of version " + needed + " or later into PATH. " +
                 packaged(needed)}};
}

std::string dump_tables(const Connection& connection, const std::vector<std::string>& tables)
{
    std::vector<std::string> options = dump_options(connection, {});
    options.emplace_back("--schema-only");
    for (const std::string& table : tables)
        options.push_back("--table=" + table);
    return kSettings + without_numbers(connection, without_frame(run_pg_dump(connection, options)));
}

NamelessFile::NamelessFile() : file_(memfd_create("snowflake-shard", MFD_CLOEXEC))
{
    if (file_ < 0)
        throw Failure(std::string("cannot make a file in memory: ") + std::strerror(errno));
}

NamelessFile::~NamelessFile()
{
    close(file_);
}

std::string NamelessFile::path() const
{
    return "/proc/" + std::to_string(getpid()) + "/fd/" + std::to_string(file_);
}

namespace
{

std::vector<Archive::Schema> read_schemas(Connection& connection,
                                          const std::vector<std::string>& names)
{
    const Result rows = connection.query(
        "SELECT nspname, quote_ident(nspname), pg_get_userbyid(nspowner) FROM unnest($1::text[]) "
        "WITH ORDINALITY AS s (name, n) JOIN pg_namespace ON nspname = name ORDER BY n",
        {sql_array(names)});
    std::vector<Archive::Schema> schemas;
    for (int i = 0; i < rows.rows(); i++)
        schemas.push_back({rows.text(i, 0), rows.text(i, 1), rows.text(i, 2)});
    return schemas;
}

/* A newer pg_dump than the server can know another keyword, and quotes it. */
std::string always_quoted(const std::string& name)
{
    std::string quoted = "\"";
    for (const char c : name)
        quoted += c == '"' ? "\"\"" : std::string(1, c);
    return quoted + '"';
}

/* Options of pg_restore, by owner. */
std::map<std::string, std::vector<std::string>>
schemas_by_owner(const std::vector<Archive::Schema>& schemas)
{
    std::map<std::string, std::vector<std::string>> options;
    for (const Archive::Schema& schema : schemas)
        options[schema.owner].push_back("--schema=" + schema.name);
    return options;
}

/* pg_restore writes a newline in a name as a space. */
std::string on_one_line(std::string text)
{
    std::replace_if(
        text.begin(), text.end(), [](char c) { return c == '\n' || c == '\r'; }, ' ');
    return text;
}

} // namespace

Archive::Archive(Connection& connection, const std::vector<std::string>& schemas,
                 const std::string& lock_timeout)
    : schemas_(read_schemas(connection, schemas)), pg_restore_(path_for(connection, "pg_restore"))
{
    std::vector<std::string> options = dump_options(connection, schemas);
    /* --schema-only would leave REFRESH MATERIALIZED VIEW out. It is in the section post-data; the
     * rows are in the section data. */
    options.insert(options.end(), {"--section=pre-data", "--section=post-data", "--format=custom",
                                   "--compress=0", "--file=" + archive_.path()});
    if (!lock_timeout.empty())
        options.push_back("--lock-wait-timeout=" + lock_timeout);
    run_pg_dump(connection, options);
    const Result given = connection.query(given_objects_sql, {sql_array(schemas)});
    for (int i = 0; i < given.rows(); i++)
        givings_[{given.number(i, 0), given.number(i, 1)}] = given.text(i, 2) + "\n";
    for (const auto& [owner, names] : schemas_by_owner(schemas_))
        if (names.size() < schemas_.size())
            for (const Item& item : list(names))
                owners_[item.id] = owner;
    pre_data_ = read_items("pre-data");
    post_data_ = read_items("post-data");
    std::vector<Item> all = pre_data_;
    all.insert(all.end(), post_data_.begin(), post_data_.end());
    text_ = without_numbers(connection, kSettings + whole(all, ""));
}

const std::vector<Archive::Item>& Archive::items(Section section) const
{
    return section == Section::pre_data ? pre_data_ : post_data_;
}

std::vector<Archive::Item> Archive::items(Section section, const std::string& owner) const
{
    std::vector<Item> made;
    for (const Item& item : items(section))
        if (item.owner == owner && item.kind != Item::Kind::schema)
            made.push_back(item);
    return made;
}

std::string Archive::definition() const
{
    std::vector<Item> all;
    for (const Section section : {Section::pre_data, Section::post_data})
        for (const Item& item : items(section, schemas_[0].owner))
            all.push_back(item);
    /* No session is of that role, but its member may give it the schema. */
    std::string owners;
    for (const Schema& schema : schemas_)
        if (schema.owner == "pg_database_owner")
            owners += "ALTER SCHEMA " + schema.quoted + " OWNER TO pg_database_owner;\n";
    return owners + sql(all);
}

/* pg_restore finds what is in a schema. What is said of the schema itself is in none: its title has
 * the name of the schema behind the word SCHEMA, quoted where that is needed. */
std::string Archive::owner_of(const Item& item) const
{
    if (schemas_by_owner(schemas_).size() == 1)
        return schemas_[0].owner;
    if (const auto found = owners_.find(item.id); found != owners_.end())
        return found->second;
    for (const Schema& schema : schemas_)
        for (const std::string& begin : {"SCHEMA - " + schema.name, " - SCHEMA " + schema.quoted,
                                         " - SCHEMA " + always_quoted(schema.name)}) {
            const std::string end = on_one_line(begin + " " + schema.owner);
            if (item.title.size() >= end.size() &&
                item.title.compare(item.title.size() - end.size(), end.size(), end) == 0)
                return schema.owner;
        }
    throw Failure("pg_restore lists an item of an unknown schema: " + item.title);
}

/* Lines: 2917; 2606 17296 CONSTRAINT insta5 bookings bookings_pkey app. pg_restore writes a newline
 * in a name as a space, so each line is an item, and no name can add one to the list. A line that
 * begins with ; is a comment. */
std::vector<Archive::Item> Archive::list(std::vector<std::string> options) const
{
    options.insert(options.end(), {"--list", archive_.path()});
    std::istringstream lines(run_program(pg_restore_, options));
    std::vector<Item> items;
    for (std::string line; std::getline(lines, line);) {
        std::istringstream words(line);
        Item item = {};
        char semicolon = 0;
        if (words >> item.id >> semicolon >> item.catalog >> item.object) {
            std::getline(words >> std::ws, item.title);
            items.push_back(item);
        }
    }
    return items;
}

/* The title is only shown, so an owner with a space in its name does no harm. */
std::vector<Archive::Item> Archive::read_items(const std::string& section) const
{
    std::vector<Item> items = list({"--section=" + section});
    for (Item& item : items) {
        item.owner = owner_of(item);
        item.kind = item.title.rfind("SCHEMA - ", 0) == 0       ? Item::Kind::schema
                    : item.title.rfind("ACL - SCHEMA ", 0) == 0 ? Item::Kind::privileges_of_schema
                                                                : Item::Kind::other;
        const std::string one = schemas_.size() == 1 ? " " + schemas_[0].name + " " : "";
        const std::size_t schema = item.title.find(one);
        if (!one.empty() && schema != std::string::npos)
            item.title.erase(schema, one.size() - 1);
        item.title.erase(std::min(item.title.rfind(' '), item.title.size())); /* the owner */
    }
    return items;
}

/* pg_restore writes privileges after everything else. But ALTER ... OWNER TO needs CREATE on the
 * schema for the new owner, if this role is no superuser. */
std::string Archive::whole(const std::vector<Item>& items, const std::string& option) const
{
    std::vector<Item> first;
    std::vector<Item> rest = items;
    if (std::any_of(items.begin(), items.end(), [](const Item& item) {
            return item.kind == Item::Kind::privileges_of_schema;
        })) {
        const auto begin_of_rest =
            std::stable_partition(rest.begin(), rest.end(),
                                  [](const Item& item) { return item.kind != Item::Kind::other; });
        first.assign(rest.begin(), begin_of_rest);
        rest.erase(rest.begin(), begin_of_rest);
    }
    return body(first, option) + body(rest, option);
}

std::string Archive::sql(const std::vector<Item>& items) const
{
    const std::string text = whole(items, "--no-owner");
    std::string givings;
    for (const Item& item : items)
        if (const auto found = givings_.find({item.catalog, item.object}); found != givings_.end())
            givings += found->second;
    return text.empty() ? "" : kSettings + text + givings;
}

std::string Archive::body(const std::vector<Item>& items, const std::string& option) const
{
    const NamelessFile list;
    std::ofstream file(list.path());
    for (const Item& item : items)
        file << item.id << ";\n";
    file.close();
    if (!file)
        throw Failure("cannot write the list of items for pg_restore");
    std::vector<std::string> options = {"--file=-", "--use-list=" + list.path(), archive_.path()};
    if (!option.empty())
        options.push_back(option);
    return items.empty() ? "" : without_frame(run_program(pg_restore_, options));
}
