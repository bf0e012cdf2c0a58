#include "dump.h"

#include <algorithm>
#include <array>
#include <cstdio>
#include <cstdlib>
#include <filesystem>

const char* const kDumpSettings = R"(
    SET client_min_messages = warning; SET check_function_bodies = false; SET row_security = off;
    SET xmloption = content; SET standard_conforming_strings = on; SET search_path = '';
    SET default_tablespace = ''; SET default_table_access_method = heap;)";

namespace
{

std::string shell_quoted(const std::string& argument)
{
    std::string quoted;
    for (const char c : argument)
        quoted += c == '\'' ? "'\\''" : std::string(1, c);
    return "'" + quoted + "'";
}

/* The pg_dump beside this program is of the version that it was built for; it comes first. Its
 * errors go to our standard error. */
std::string run_pg_dump(const Connection& connection, const std::vector<std::string>& options)
{
    std::error_code error;
    const std::string self = std::filesystem::read_symlink("/proc/self/exe", error).parent_path();
    /* ps shows arguments, but not the environment. */
    setenv("SNOWFLAKE_PASSWORD", connection.password().c_str(), 1);
    std::string command = "PGPASSWORD=\"$SNOWFLAKE_PASSWORD\" PATH=" + shell_quoted(self) +
                          ":\"$PATH\" pg_dump --encoding=UTF8 -d " +
                          shell_quoted(connection.dsn_without_password());
    for (const std::string& option : options)
        command += " " + shell_quoted(option);
    FILE* pipe = popen(command.c_str(), "r");
    if (pipe == nullptr)
        throw Failure("cannot run " + command);
    std::string output;
    std::array<char, 65536> buffer;
    for (std::size_t size = 0; (size = fread(buffer.data(), 1, buffer.size(), pipe)) > 0;)
        output.append(buffer.data(), size);
    if (pclose(pipe) != 0)
        throw Failure("pg_dump failed; its message stands above");
    return output;
}

std::string between(const std::string& text, const std::string& left, const std::string& right)
{
    const std::size_t begin = text.rfind(left) + left.size();
    return text.substr(begin, text.rfind(right) - begin);
}

/* Moves the last line off the end of the text if it sets this. */
void cut_setting(std::string& text, const std::string& name, std::string& setting)
{
    text.erase(text.find_last_not_of('\n') + 1);
    const std::size_t line = text.rfind('\n') + 1;
    if (text.compare(line, name.size() + 4, "SET " + name) == 0) {
        setting = text.substr(line) + "\n";
        text.erase(line);
        text.erase(text.find_last_not_of('\n') + 1);
    }
}

/* Splits a dump by its headings:
 *
 * -- Name: photos; Type: TABLE; Schema: insta5; Owner: app; Tablespace: fast
 *
 * What belongs to a schema itself has the schema "-" and a name such as SCHEMA insta5, for which
 * there is schema_of. pg_dump sets the tablespace and the access method above the heading of the
 * first entry that has them. Here each entry has its own with it, and leaves the defaults behind.
 */
std::map<std::string, Entries> split(const std::string& dump,
                                     std::map<std::string, std::string> schema_of)
{
    const std::string mark = "\n--\n-- Name: ";
    const std::string defaults =
        "SET default_tablespace = '';\nSET default_table_access_method = heap;\n";
    std::string tablespace;
    std::string access_method;
    const auto cut_settings = [&](std::string& text) {
        cut_setting(text, "default_table_access_method = ", access_method);
        cut_setting(text, "default_tablespace = ", tablespace);
    };
    const std::size_t footer = dump.rfind("\n--\n-- PostgreSQL database dump complete\n");
    std::size_t at = std::min(dump.find(mark), footer);
    std::string head = dump.substr(0, at);
    cut_settings(head);
    std::map<std::string, Entries> schemas;
    while (at < footer) {
        const std::size_t line = at + mark.size();
        const std::size_t behind = dump.find("\n--\n\n", line);
        const std::string heading = dump.substr(line, behind - line);
        at = std::min(dump.find(mark, behind), footer);
        Entry entry = {between(heading, "; Type: ", "; Schema: "),
                       heading.substr(0, heading.rfind("; Type: ")),
                       dump.substr(behind + 5, at - behind - 5)};
        std::string set;
        if (heading.rfind("; Tablespace: ") != std::string::npos)
            set = tablespace;
        if ((entry.type == "TABLE" || entry.type == "MATERIALIZED VIEW") &&
            defaults.find(access_method) == std::string::npos)
            set += access_method;
        cut_settings(entry.sql);
        entry.sql = set + entry.sql + "\n" + (set.empty() ? "" : defaults);
        std::string schema = between(heading, "; Schema: ", "; Owner: ");
        if (schema == "-")
            schema = schema_of[(entry.type == "SCHEMA" ? "SCHEMA " : "") + entry.name];
        schemas[schema].push_back(entry);
    }
    return schemas;
}

std::map<std::string, Entries> read_dump(const Connection& connection,
                                         const std::vector<std::string>& schemas,
                                         std::vector<std::string> options)
{
    std::map<std::string, std::string> schema_of;
    for (const std::string& schema : schemas) {
        const std::string quoted = connection.identifier(schema);
        options.push_back("--schema=" + quoted); /* a quoted pattern matches the name itself */
        schema_of["SCHEMA " + schema] = schema_of["SCHEMA " + quoted] = schema;
    }
    return split(run_pg_dump(connection, options), schema_of);
}

} // namespace

std::map<std::string, Entries> dump_schemas(const Connection& connection,
                                            const std::vector<std::string>& schemas)
{
    /* Not --schema-only, which leaves REFRESH MATERIALIZED VIEW out. */
    return read_dump(connection, schemas, {"--section=pre-data", "--section=post-data"});
}

Entries dump_section(const Connection& connection, const std::string& schema,
                     const std::string& section)
{
    return read_dump(connection, {schema}, {"--section=" + section})[schema];
}

std::string sql_of(const Entries& entries)
{
    std::string sql;
    for (const Entry& entry : entries)
        sql += entry.sql;
    return sql;
}
