#include "dump.h"

#include <array>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <sstream>

#include "lexer.h"

const char* const kDumpSettings =
    "SET client_min_messages = warning; SET check_function_bodies = false; SET xmloption = "
    "content; "
    "SET row_security = off; SET standard_conforming_strings = on; SET default_tablespace = ''; "
    "SET default_table_access_method = heap; SET search_path = ''";

namespace
{

/* What a program writes to its standard output; its errors go to ours. */
std::string output_of(const std::vector<std::string>& command)
{
    std::string line;
    for (const std::string& argument : command) {
        line += " '";
        for (const char c : argument)
            line += c == '\'' ? "'\\''" : std::string(1, c);
        line += "'";
    }
    FILE* pipe = popen(line.c_str(), "r");
    if (pipe == nullptr)
        throw Failure("cannot run " + command[0]);
    std::string output;
    std::array<char, 65536> buffer;
    for (std::size_t size = 0; (size = fread(buffer.data(), 1, buffer.size(), pipe)) > 0;)
        output.append(buffer.data(), size);
    if (pclose(pipe) != 0)
        throw Failure(command[0] + " failed; its message stands above");
    return output;
}

/* pg_dump refuses servers that are newer than itself. The one beside this program comes first. */
std::string find_pg_dump(int server_major)
{
    std::error_code error;
    const std::string self = std::filesystem::read_symlink("/proc/self/exe", error).parent_path();
    const char* path = std::getenv("PATH");
    std::istringstream list(self + ":" + (path == nullptr ? "" : path));
    for (std::string folder; std::getline(list, folder, ':');) {
        std::string program = folder + "/pg_dump";
        if (!std::filesystem::exists(program, error))
            continue;
        std::istringstream version(
            output_of({program, "--version"})); /* pg_dump (PostgreSQL) 15.20 */
        std::string word;
        int major = 0;
        version >> word >> word >> major;
        if (major >= server_major)
            return program;
    }
    throw Failure("pg_dump of version " + std::to_string(server_major) +
                  " or newer is neither beside snowflake-shard nor in PATH");
}

/* The name that an identifier stands for. */
std::string unquoted(const std::string& identifier)
{
    if (identifier[0] != '"')
        return identifier;
    std::string name;
    for (std::size_t i = 1; i + 1 < identifier.size(); i++) {
        name += identifier[i];
        i += identifier[i] == '"' ? 1 : 0; /* it is doubled */
    }
    return name;
}

/* Follows pg_dump's headings and the settings that it writes between them. */
class DumpReader
{
public:
    void add(const std::string& statement)
    {
        std::size_t begin = 0;
        for (const Token& token : tokens_of(statement)) {
            if (token.kind != TokenKind::blank)
                break;
            read_heading(std::string(token.text));
            begin += token.text.size();
        }
        const std::string sql = statement.substr(begin) + ";\n";
        if (sql.rfind("SET default_tablespace = ", 0) == 0)
            tablespace_ = sql;
        else if (sql.rfind("SET default_table_access_method = ", 0) == 0)
            access_method_ = sql;
        else if (entries_ != nullptr)
            put(sql);
    }

    const std::map<std::string, Entries>& schemas() const { return schemas_; }

private:
    /* -- Name: photos; Type: TABLE; Schema: insta5; Owner: app */
    void read_heading(const std::string& comment)
    {
        const std::size_t type = comment.rfind("; Type: ");
        const std::size_t schema = comment.rfind("; Schema: ");
        const std::size_t owner = comment.rfind("; Owner:");
        if (comment.rfind("-- Name: ", 0) != 0 || owner == std::string::npos)
            return;
        const std::string name = comment.substr(9, type - 9);
        const std::string kind = comment.substr(type + 8, schema - type - 8);
        std::string schema_name = comment.substr(schema + 10, owner - schema - 10);
        if (schema_name == "-") /* a schema itself; its privileges, its comment */
            schema_name = kind == "SCHEMA" ? name : unquoted(name.substr(std::strlen("SCHEMA ")));
        entries_ = &schemas_[schema_name];
        entries_->push_back({kind, name, ""});
    }

    /* Each entry has its tablespace and access method with it, and leaves the defaults behind. */
    void put(const std::string& sql)
    {
        Entry& entry = entries_->back();
        const bool is_first = entry.sql.empty();
        const bool is_table = entry.type == "TABLE" || entry.type == "MATERIALIZED VIEW";
        const bool has_space = is_table || entry.type == "INDEX" || entry.type == "CONSTRAINT";
        std::string after;
        if (is_first && has_space && tablespace_ != kNoSpace) {
            entry.sql += tablespace_;
            after += kNoSpace;
        }
        if (is_first && is_table && access_method_ != kHeap) {
            entry.sql += access_method_;
            after += kHeap;
        }
        entry.sql += sql + after;
    }

    static constexpr const char* kNoSpace = "SET default_tablespace = '';\n";
    static constexpr const char* kHeap = "SET default_table_access_method = heap;\n";
    std::map<std::string, Entries> schemas_;
    Entries* entries_ = nullptr;
    std::string tablespace_ = kNoSpace;
    std::string access_method_ = kHeap;
};

std::map<std::string, Entries> read_dump(const Connection& connection,
                                         const std::vector<std::string>& schemas,
                                         std::vector<std::string> options)
{
    for (const std::string& schema : schemas) /* a quoted pattern matches the name itself */
        options.push_back("--schema=" + connection.identifier(schema));
    DumpReader reader;
    for (const std::string& statement : split_statements(run_pg_dump(connection, options)))
        reader.add(statement);
    return reader.schemas();
}

} // namespace

std::string run_pg_dump(const Connection& connection, const std::vector<std::string>& options)
{
    std::vector<std::string> command = {find_pg_dump(connection.version() / 10000)};
    command.insert(command.end(), options.begin(), options.end());
    command.insert(command.end(), {"--encoding=UTF8", "-d", connection.dsn_without_password()});
    /* The password is not in the arguments, where ps would show it. */
    const char* variable = std::getenv("PGPASSWORD");
    const std::string before = variable == nullptr ? "" : variable;
    if (!connection.password().empty())
        setenv("PGPASSWORD", connection.password().c_str(), 1);
    std::string output = output_of(command);
    before.empty() ? unsetenv("PGPASSWORD") : setenv("PGPASSWORD", before.c_str(), 1);
    return output;
}

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
