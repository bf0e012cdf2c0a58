#include "dump.h"

#include <algorithm>
#include <array>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <sstream>

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

/* What a command of the shell writes to its standard output; its errors go to ours. */
std::string output_of(const std::string& command)
{
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

/* The pg_dump beside this program is of the version that it was built for; it comes first. */
std::string run_pg_dump(const Connection& connection, const std::vector<std::string>& options)
{
    std::error_code error;
    const std::string self = std::filesystem::read_symlink("/proc/self/exe", error).parent_path();
    std::string command = "PATH=" + shell_quoted(self) + ":\"$PATH\" pg_dump --encoding=UTF8 -d " +
                          shell_quoted(connection.dsn_without_password());
    for (const std::string& option : options)
        command += " " + shell_quoted(option);
    /* The password is not in the arguments, where ps would show it. */
    const char* variable = std::getenv("PGPASSWORD");
    const std::string before = variable == nullptr ? "" : variable;
    if (!connection.password().empty())
        setenv("PGPASSWORD", connection.password().c_str(), 1);
    std::string output = output_of(command);
    before.empty() ? unsetenv("PGPASSWORD") : setenv("PGPASSWORD", before.c_str(), 1);
    return output;
}

std::string between(const std::string& text, const std::string& left, const std::string& right)
{
    const std::size_t begin = text.rfind(left) + left.size();
    return text.substr(begin, text.rfind(right) - begin);
}

/* pg_dump sets the tablespace and the access method above the heading of the first entry that has
 * them. Here each entry has its own with it, and leaves the defaults behind. */
class Settings
{
public:
    /* Cuts those for the entries below off the end of a text. */
    void cut_from(std::string& text)
    {
        for (;;) {
            text.erase(text.find_last_not_of('\n') + 1);
            const std::size_t begin = text.rfind('\n') + 1;
            const std::string line = text.substr(begin) + "\n";
            if (line.rfind("SET default_tablespace = ", 0) == 0)
                tablespace_ = line;
            else if (line.rfind("SET default_table_access_method = ", 0) == 0)
                access_method_ = line;
            else
                return;
            text.erase(begin);
        }
    }

    std::string around(const Entry& entry, bool has_tablespace) const
    {
        const bool is_table = entry.type == "TABLE" || entry.type == "MATERIALIZED VIEW";
        const std::string set = (has_tablespace ? tablespace_ : "") +
                                (is_table && access_method_ != kHeap ? access_method_ : "");
        return set + entry.sql + "\n" + (set.empty() ? "" : kNoSpace + kHeap);
    }

private:
    const std::string kNoSpace = "SET default_tablespace = '';\n";
    const std::string kHeap = "SET default_table_access_method = heap;\n";
    std::string tablespace_;
    std::string access_method_ = kHeap;
};

/* Splits a dump by its headings:
 *
 * -- Name: photos; Type: TABLE; Schema: insta5; Owner: app; Tablespace: fast
 *
 * What belongs to a schema itself has the schema "-" and a name such as SCHEMA insta5, for which
 * there is schema_of. */
std::map<std::string, Entries> split(const std::string& dump,
                                     std::map<std::string, std::string> schema_of)
{
    const std::string mark = "\n--\n-- Name: ";
    const std::size_t footer = dump.rfind("\n--\n-- PostgreSQL database dump complete\n");
    std::size_t at = std::min(dump.find(mark), footer);
    std::string head = dump.substr(0, at);
    Settings settings;
    settings.cut_from(head);
    std::map<std::string, Entries> schemas;
    while (at < footer) {
        const std::size_t line = at + mark.size();
        const std::size_t behind = dump.find("\n--\n\n", line);
        const std::string heading = dump.substr(line, behind - line);
        at = std::min(dump.find(mark, behind), footer);
        Entry entry = {between(heading, "; Type: ", "; Schema: "),
                       heading.substr(0, heading.rfind("; Type: ")),
                       dump.substr(behind + 5, at - behind - 5)};
        const Settings own = settings;
        settings.cut_from(entry.sql);
        entry.sql = own.around(entry, heading.rfind("; Tablespace: ") != std::string::npos);
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
    return read_dump(connection, schemas, {"--schema-only"});
}

Entries dump_section(const Connection& connection, const std::string& schema,
                     const std::string& section)
{
    return read_dump(connection, {schema},
                     {"--section=" + section, "--no-publications", "--no-subscriptions"})[schema];
}

std::string sql_of(const Entries& entries)
{
    std::string sql;
    for (const Entry& entry : entries)
        sql += entry.sql;
    return sql;
}
