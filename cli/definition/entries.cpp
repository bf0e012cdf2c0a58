#include "definition/entries.h"

#include <algorithm>
#include <set>

#include "postgres/dump.h"
#include "postgres/sql_text.h"
#include "sql/sql.h"

namespace
{

const std::string kMark = "\n--\n-- Name: ";
const std::string kType = "; Type: ";
const std::string kSchema = "; Schema: ";
const std::string kOwner = "; Owner: ";

/* The privileges of all schemas at once, because each look at a catalog reads all of it. */
void add_privileges(Connection& connection, const std::vector<std::string>& schemas,
                    std::map<std::string, Entries>& entries)
{
    const Result rows = connection.query(privileges_sql, {sql_array(schemas)});
    for (int i = 0; i < rows.rows(); i++)
        entries[rows.text(i, 1)].push_back({"ACL", rows.text(i, 0), rows.text(i, 0) + "\n"});
}

/* Moves the last line off the end of the text if it sets this. pg_dump writes settings above the
 * heading of the entry that they are for, so they are at the end of the entry before. */
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

/* The owner of an object that does not work with his rights is no part of the definition: see
 * Archive::sql(). The statement is the last one of the entry. */
void cut_owner(const std::string& type, std::string& sql)
{
    const std::set<std::string> without_rights = {"AGGREGATE",      "COLLATION",
                                                  "CONVERSION",     "DOMAIN",
                                                  "FUNCTION",       "OPERATOR",
                                                  "OPERATOR CLASS", "OPERATOR FAMILY",
                                                  "PROCEDURE",      "SEQUENCE",
                                                  "STATISTICS",     "TEXT SEARCH CONFIGURATION",
                                                  "TYPE",           "TEXT SEARCH DICTIONARY"};
    const std::size_t last = sql.rfind("\n\nALTER ");
    if (without_rights.count(type) == 0 || sql.find("SECURITY DEFINER") != std::string::npos ||
        last == std::string::npos || sql.find(" OWNER TO ", last) == std::string::npos)
        return;
    sql.erase(last);
}

/* A heading is
 *
 * -- Name: photos; Type: TABLE; Schema: insta5; Owner: app; Tablespace: fast
 *
 * pg_dump sets the tablespace and the access method above the heading of the first entry that has
 * them; here each entry has its own. */
class Splitter
{
public:
    /* only: the schema of a dump of one schema, whose name may be anything. Else no name of a
     * schema has a semicolon. The heading of a schema has the schema "-" and the name that stands
     * here as SCHEMA insta5, as it does in the headings of the schema's comment and privileges. */
    Splitter(std::map<std::string, std::string> schema_of, std::string only)
        : schema_of_(std::move(schema_of)), only_(std::move(only))
    {
    }

    std::map<std::string, Entries> split(const std::string& dump)
    {
        const std::vector<std::size_t> headings = find_headings(dump);
        std::string head = dump.substr(0, headings.empty() ? dump.size() : headings[0]);
        cut_settings(head);
        for (std::size_t i = 0; i < headings.size(); i++) {
            const std::size_t line = headings[i] + kMark.size();
            const std::size_t behind = std::min(dump.find("\n--\n", line), dump.size());
            const std::size_t end = i + 1 < headings.size() ? headings[i + 1] : dump.size();
            add(dump.substr(line, behind - line), dump.substr(behind, end - behind));
        }
        return schemas_;
    }

private:
    /* Outside of names, constants and bodies. */
    static std::vector<std::size_t> find_headings(const std::string& dump)
    {
        std::vector<std::size_t> headings;
        for (std::size_t at = 0; at < dump.size(); at = end_of_token(dump, at))
            if (dump.compare(at, kMark.size(), kMark) == 0)
                headings.push_back(at);
        return headings;
    }

    void cut_settings(std::string& text)
    {
        /* pg_dump sets the tablespace first, so the access method is the last line. */
        cut_setting(text, "default_table_access_method = ", access_method_);
        cut_setting(text, "default_tablespace = ", tablespace_);
    }

    /* Where the part with the schema begins. The last one, because a name can have the same words,
     * and comes first. pg_dump writes a newline in a name as a space, so a name cannot end the
     * heading. */
    std::size_t find_schema(const std::string& heading) const
    {
        std::string shown = only_;
        std::replace_if(
            shown.begin(), shown.end(), [](char c) { return c == '\n' || c == '\r'; }, ' ');
        const std::size_t at = heading.rfind(kSchema + shown + kOwner);
        return only_.empty()             ? heading.rfind(kSchema)
               : at == std::string::npos ? heading.rfind(kSchema + "-" + kOwner)
                                         : at;
    }

    /* The schema to which a heading belongs, by its type and by the schema in it. */
    std::string schema_of(const std::string& name, const std::string& type,
                          const std::string& schema)
    {
        if (!only_.empty())
            return only_;
        return schema == "-" ? schema_of_[(type == "SCHEMA" ? "SCHEMA " : "") + name] : schema;
    }

    void add(const std::string& heading, std::string sql)
    {
        const std::size_t schema_at = find_schema(heading);
        const std::size_t type_at = heading.rfind(kType, schema_at);
        if (schema_at == std::string::npos || type_at == std::string::npos)
            throw Failure("pg_dump has written a heading that cannot be read: " + visible(heading));
        const std::string name = heading.substr(0, type_at);
        const std::string type =
            heading.substr(type_at + kType.size(), schema_at - type_at - kType.size());
        const std::size_t begin = schema_at + kSchema.size();
        const std::string schema =
            schema_of(name, type, heading.substr(begin, heading.find(kOwner, begin) - begin));
        /* From the settings above this heading. cut_settings() then takes those of the next entry
         * off the end of this one. heap is left out: pg_dump writes it or not, depending on the
         * tables before. */
        std::string set;
        if (heading.find("; Tablespace: ", begin + only_.size()) != std::string::npos)
            set = tablespace_;
        /* pg_dump writes no such setting for a partitioned table: the one above it is that of a
         * table before, which can be in another shard. */
        if ((type == "TABLE" || type == "MATERIALIZED VIEW") &&
            sql.find("\nPARTITION BY ") == std::string::npos &&
            access_method_.find(" = heap;") == std::string::npos)
            set += access_method_;
        cut_settings(sql);
        sql.erase(0, std::min(sql.find_first_not_of("\n-"), sql.size()));
        /* A shard that moves has the triggers of the fence on each table, and after a split all
         * shards have one. They are no part of the definition. */
        if (type == "TRIGGER" &&
            (sql.find("EXECUTE FUNCTION snowflake_move_") != std::string::npos ||
             sql.find("EXECUTE FUNCTION snowflake_split.") != std::string::npos))
            return;
        cut_owner(type, sql);
        if (type != "ACL") /* see add_privileges() */
            schemas_[schema].push_back({type, name, set + sql + "\n\n"});
    }

    std::map<std::string, std::string> schema_of_;
    const std::string only_;
    std::map<std::string, Entries> schemas_;
    std::string tablespace_;
    std::string access_method_;
};

/* They come behind the schema in a heading, so it could not be told from theirs. A role that may
 * make roles or tablespaces has made it on purpose. */
void require_readable_names(Connection& connection)
{
    const Result rows = connection.query(R"(
        SELECT 'role ' || quote_ident(rolname) FROM pg_roles WHERE rolname ~ '; (Type|Schema): '
        UNION ALL
        SELECT 'tablespace ' || quote_ident(spcname) FROM pg_tablespace WHERE spcname ~ '; (Type|Schema): ')");
    if (rows.rows() > 0)
        throw Failure(connection.server() + ": the name of " + visible(rows.text(0, 0)) +
                      " looks like a heading of pg_dump\nHINT:  Give it another name.");
}

} // namespace

std::map<std::string, Entries>
split_dump(Connection& connection, const std::vector<std::string>& schemas, const std::string& dump)
{
    /* Twice, as pg_dump names it: without quotes in the heading of the schema, and as fmtId()
     * quotes it, if that is needed, in those of its comment and its privileges. */
    std::map<std::string, std::string> schema_of;
    for (const std::string& schema : schemas)
        for (const std::string& name : {schema, connection.identifier(schema)})
            schema_of["SCHEMA " + name] = schema;
    require_readable_names(connection);
    std::map<std::string, Entries> entries =
        Splitter(schema_of, schemas.size() == 1 ? schemas[0] : "").split(dump);
    add_privileges(connection, schemas, entries);
    return entries;
}

/* A schema whose name has a semicolon is dumped alone: in a heading among others, it could not be
 * told from theirs. */
std::map<std::string, Entries> read_entries(Connection& connection,
                                            const std::vector<std::string>& schemas,
                                            const std::string& lock_timeout)
{
    std::map<std::string, Entries> entries;
    std::vector<std::string> together;
    const auto read = [&](const std::vector<std::string>& some) {
        entries.merge(split_dump(connection, some, Archive(connection, some, lock_timeout).text()));
    };
    for (const std::string& schema : schemas)
        if (schema.find(';') == std::string::npos)
            together.push_back(schema);
        else
            read({schema});
    if (!together.empty())
        read(together);
    return entries;
}
