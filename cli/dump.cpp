#include "dump.h"

#include <filesystem>
#include <sstream>

#include "lexer.h"
#include "process.h"

const char* const kDumpSettings =
    "SET client_min_messages = warning; SET check_function_bodies = false; "
    "SET xmloption = content; SET row_security = off; "
    "SET standard_conforming_strings = on; SET default_tablespace = ''; "
    "SET default_table_access_method = heap; "
    "SELECT pg_catalog.set_config('search_path', '', false)";

namespace
{

/* Beside this program first: there it fits the server that the program was installed for. */
std::vector<std::string> pg_dump_candidates()
{
    std::vector<std::string> candidates;
    std::error_code error;
    const auto self = std::filesystem::read_symlink("/proc/self/exe", error);
    if (!error)
        candidates.push_back(self.parent_path() / "pg_dump");
    const char* path = std::getenv("PATH");
    std::istringstream folders(path == nullptr ? "" : path);
    for (std::string folder; std::getline(folders, folder, ':');)
        candidates.push_back(std::filesystem::path(folder.empty() ? "." : folder) / "pg_dump");
    return candidates;
}

/* "pg_dump (PostgreSQL) 15.20" is 15. */
int major_version(const std::string& program)
{
    std::istringstream words(output_of({program, "--version"}, {}));
    std::string name;
    std::string product;
    int major = 0;
    words >> name >> product >> major;
    return major;
}

/* pg_dump refuses servers that are newer than itself. */
std::string find_pg_dump(int server_major)
{
    for (const std::string& program : pg_dump_candidates())
        if (std::filesystem::exists(program) && major_version(program) >= server_major)
            return program;
    throw Failure("pg_dump of version " + std::to_string(server_major) +
                  " or newer is neither beside snowflake-shard nor in PATH");
}

/* Follows pg_dump's headings and the settings that it writes between them. */
class DumpReader
{
public:
    std::map<std::string, Entries> read(const std::string& text)
    {
        for (const std::string& statement : split_statements(text))
            add(statement);
        return std::move(schemas_);
    }

private:
    void add(const std::string& statement)
    {
        std::size_t body = 0;
        for (const Token& token : tokens_of(statement)) {
            if (token.kind == TokenKind::comment)
                read_heading(std::string(token.text));
            else if (token.kind != TokenKind::space)
                break;
            body += token.text.size();
        }
        const std::string sql = statement.substr(body) + ";\n";
        if (sql.rfind("SET default_tablespace = ", 0) == 0)
            tablespace_ = sql;
        else if (sql.rfind("SET default_table_access_method = ", 0) == 0)
            access_method_ = sql;
        else if (entries_ != nullptr)
            put(sql);
    }

    /* -- Name: photos; Type: TABLE; Schema: insta5; Owner: app */
    void read_heading(const std::string& comment)
    {
        const std::size_t type = comment.rfind("; Type: ");
        const std::size_t schema = comment.rfind("; Schema: ");
        const std::size_t owner = comment.rfind("; Owner:");
        if (comment.rfind("-- Name: ", 0) != 0 || type == std::string::npos ||
            schema == std::string::npos || owner == std::string::npos)
            return;
        Entry entry;
        entry.name = comment.substr(9, type - 9);
        entry.type = comment.substr(type + 8, schema - type - 8);
        std::string schema_name = comment.substr(schema + 10, owner - schema - 10);
        if (schema_name == "-") /* a schema itself, its privileges, its comment */
            schema_name = entry.name.rfind("SCHEMA ", 0) == 0 ? entry.name.substr(7) : entry.name;
        entries_ = &schemas_[schema_name];
        entries_->push_back(entry);
    }

    void put(const std::string& sql)
    {
        Entry& entry = entries_->back();
        const bool is_first = entry.sql.empty();
        const bool is_table = entry.type == "TABLE" || entry.type == "MATERIALIZED VIEW";
        const bool has_space = is_table || entry.type == "INDEX" || entry.type == "CONSTRAINT";
        std::string after;
        if (is_first && has_space && tablespace_ != "SET default_tablespace = '';\n") {
            entry.sql += tablespace_;
            after += "SET default_tablespace = '';\n";
        }
        if (is_first && is_table && access_method_ != "SET default_table_access_method = heap;\n") {
            entry.sql += access_method_;
            after += "SET default_table_access_method = heap;\n";
        }
        entry.sql += sql + after;
    }

    std::map<std::string, Entries> schemas_;
    Entries* entries_ = nullptr;
    std::string tablespace_ = "SET default_tablespace = '';\n";
    std::string access_method_ = "SET default_table_access_method = heap;\n";
};

} // namespace

std::string run_pg_dump(const Connection& connection, const std::vector<std::string>& options)
{
    std::vector<std::string> command = {find_pg_dump(connection.version() / 10000)};
    command.insert(command.end(), options.begin(), options.end());
    command.insert(command.end(), {"--encoding=UTF8", "-d", connection.dsn_without_password()});
    std::map<std::string, std::string> environment;
    if (!connection.password().empty())
        environment["PGPASSWORD"] = connection.password();
    return output_of(command, environment);
}

std::map<std::string, Entries> read_dump(const std::string& text)
{
    return DumpReader().read(text);
}

std::map<std::string, Entries> dump_schemas(const Connection& connection,
                                            const std::vector<std::string>& schemas)
{
    std::vector<std::string> options = {"--schema-only"};
    for (const std::string& schema : schemas) {
        /* A quoted pattern matches the name itself. */
        options.emplace_back("-n");
        options.push_back(connection.identifier(schema));
    }
    return read_dump(run_pg_dump(connection, options));
}

std::string sql_of(const Entries& entries)
{
    std::string sql;
    for (const Entry& entry : entries)
        sql += entry.sql;
    return sql;
}
