#include "readers.h"

#include <algorithm>
#include <cmath>
#include <sstream>

#include "definition/marks.h"
#include "plan/plan_file.h"
#include "routers/pooler_file.h"
#include "plan/weights.h"
#include "fleet/catalog.h"
#include "postgres/dsn.h"
#include "postgres/server_file.h"
#include "postgres/sql_text.h"
#include "verbs/record.h"

namespace
{

const std::string kHash(64, 'a');
const std::string kNul(1, '\0');

std::vector<std::string> lines_in(const std::string& text)
{
    std::vector<std::string> lines;
    std::istringstream input(text);
    for (std::string line; std::getline(input, line);)
        lines.push_back(line);
    return lines;
}

bool has_nul(const std::string& text)
{
    return text.find('\0') != std::string::npos;
}

void check_plan(const std::string& /*text*/, const std::string& file)
{
    std::set<int> numbers;
    for (const PlanEntry& entry : read_plan(file)) {
        require(numbers.insert(entry.number).second, "a shard moves once");
        require(entry.number >= 0 && entry.number <= 8191, "a number is one of 13 bits");
        require(!entry.schema.empty() && !entry.from.empty() && !entry.to.empty(),
                "a move has a schema and two servers");
    }
}

/* libpq parses the strings; what is built from the settings must be read back with the same. */
void check_server_file(const std::string& /*text*/, const std::string& file)
{
    const std::map<int, std::string> dsns = read_server_file(file);
    require(!dsns.empty(), "the file names a server");
    for (const auto& [line, dsn] : dsns) {
        require(line > 0, "lines are counted from 1");
        require(dsn.find_first_of(kNul + "\n") == std::string::npos, "it is one C string");
        require(!dsn.empty() && dsn.front() != ' ' && dsn.back() != ' ', "it is trimmed");
    }
    for (const auto& [line, dsn] : dsns) {
        const std::string longer = dsn_with_options(dsn, "-c a=b");
        bool is_same = false;
        try {
            is_same = has_password(longer) == has_password(dsn);
        } catch (const UsageError&) {
        }
        require(is_same, "the settings are written so that libpq reads them");
    }
}

/* All bytes stay but those of the place, in the lines of the aliases. */
void check_lines(const std::string& before, const std::string& after, const std::set<int>& edited)
{
    const std::vector<std::string> lines = lines_in(before);
    const std::vector<std::string> made = lines_in(after);
    require(lines.size() == made.size(), "no line is lost");
    for (std::size_t i = 0; i < lines.size(); i++)
        if (edited.count(static_cast<int>(i) + 1) == 0)
            require(lines[i] == made[i], "other lines stay");
        else
            require(std::count(lines[i].begin(), lines[i].end(), '\0') ==
                        std::count(made[i].begin(), made[i].end(), '\0'),
                    "the rest of an alias's line stays");
}

void check_pooler_file(const std::string& text, const std::string& /*file*/)
{
    for (const std::string& include : includes_of(text))
        require(!include.empty() && include.find('\n') == std::string::npos, "a file has a name");
    const Aliases all = {"shard5", "shard6", "shard 7"};
    const Address place = text.size() % 2 == 0 ? Address{"/run/it's here", "6432", "my=app"}
                                               : Address{"db2", "5432", "app"};
    const auto before = lines_of(text, all);
    Aliases aliases;
    std::set<int> edited;
    for (const auto& [alias, lines] : before)
        if (lines.size() == 1) {
            aliases.insert(alias);
            edited.insert(lines[0].number);
        }
    if (aliases.empty())
        throw Failure("no alias has one line");
    const std::string made = with_place(text, aliases, place);
    check_lines(text, made, edited);
    for (const auto& [alias, lines] : lines_of(made, all)) {
        require(lines.size() == before.at(alias).size(), "the aliases are the same");
        for (std::size_t i = 0; i < lines.size(); i++)
            require(lines[i].place ==
                        (aliases.count(alias) > 0 ? place : before.at(alias)[i].place),
                    "the aliases lead to the new place, and no others");
    }
    require(with_place(made, aliases, place) == made, "the second time changes nothing");
}

void check_record(const std::string& text, const std::string& /*file*/)
{
    Record record(text);
    record.has({"photos.place", "", kHash});
    const std::string source = record.source();
    require(Record(source).source() == source, "a record reads what it has written");
    const Change change = {"added.sql", "", std::string(64, '0')};
    if (!record.has(change))
        record.add(change);
    require(Record(record.source()).has(change), "a change that was added is there");
}

void check_weights(const std::string& text, const std::string& file)
{
    for (const auto& [shard, weight] : read_weights(file))
        require(shard >= 0 && std::isfinite(weight) && weight >= 0, "a weight is a number");
    for (const std::string& line : lines_in(text))
        require(!has_nul(line.substr(0, line.find('#'))), "a line is read to its end");
}

void check_shards(const std::string& text, const std::string& /*file*/)
{
    const ShardSet shards = parse_shards(text);
    require(!shards.empty() && *shards.begin() >= 0 && *shards.rbegin() <= 8191, "13 bits");
    require(parse_shards(format_shards(shards)) == shards, "they are read as they are written");
    require(!has_nul(text), "the text is read to its end");
}

/* A part of a dump, as if it were the definition of objects of some types. */
void check_marks(const std::string& text, const std::string& /*file*/)
{
    for (std::size_t at = 0; at < text.size();) {
        const std::size_t end = end_of_token(text, at);
        require(end > at && end <= text.size(), "a token ends behind its begin");
        at = end;
    }
    require(code_of(text).size() == text.size(), "positions stay");
    const Shard plain = {5, "insta5", "insta5"};
    const Shard quoted = {12, R"(Insta "5)", R"("Insta ""5")"};
    const bool has_marks = text.find_first_of({kNameMark, kNumberMark}) != std::string::npos;
    for (const char* type : {"TABLE", "FUNCTION", "COMMENT"}) {
        Entry entry = mark({type, "f(insta5.t)", text}, plain);
        require(has_marks || unmark(entry.sql, plain) == text, "marks are reversible");
        mark_in_text(entry, quoted);
        is_marked_in_text(entry);
        mark({type, "x", text}, quoted);
    }
    if (has_marks)
        throw Failure("marks are in the text");
}

const std::string kRecordHead =
    "\n-- Written by snowflake-shard run: the changes that this shard has had, "
    "with the SHA-256 of their SQL.\nSELECT ARRAY[\n";
const std::string kRecordEnd = "]::pg_catalog.text[]\n";

Reader plans()
{
    return {
        "plan",
        {R"([
  {"shard": 1, "schema": "insta1", "weight": 900, "size": 1073741824, "from": "dbname=app", "to": "host=db2 dbname=app"},
  {"shard": 10, "schema": "insta10", "weight": 120.5, "size": 32768, "from": "dbname=app", "to": "host=db2 dbname=app"}
]
)",
         R"([{"shard": 8191, "schema": "Insta \"5\\\u00e9\n", "from": "postgresql://u:p%20w@[::1]:5432/app?sslmode=require", "to": "host=/run dbname='my app'"}])",
         "[]\n"},
        {"[",
         "]",
         "{",
         "}",
         "null",
         "true",
         "\"\"",
         "{}",
         "[]",
         ":",
         "\"shard\"",
         "\"schema\"",
         "\"from\"",
         "\\u0000",
         "\\ud800",
         "\\u",
         "-2147483649",
         "1.5",
         "1e5",
         "9223372036854775808",
         "18446744073709551615",
         "18446744073709551616",
         "8192",
         "[[[[[[[[",
         "{\"a\":",
         "/**/",
         "NaN"},
        10000,
        check_plan};
}

Reader server_files()
{
    return {
        "servers",
        {"# all servers of the application\ndbname=app\nhost=db2 port=5432 user=app "
         "password='a # \\'b' # the second\n\n  postgresql://u:se%25cret@db3:5433/app?sslmode="
         "require&connect_timeout=3\n",
         "host=a,b port=5432,6432 target_session_attrs=primary options='-c lock_timeout=5s'\r\n"
         "app\r\n#end",
         "postgres:///app?host=/run&options=-c%20jit%3Doff\n"
         "user = 'x y' dbname= app passfile=/x\\ y\n"},
        {"postgresql://", "://",      "@",           ":",         "[::1]", "%", "%00",  "%0b",
         "%0d",           "%20",      "%gg",         "?",         "&",     "/", "host", "hostaddr",
         "options",       "password", "sslpassword", "service=x", "' #",   " #"},
        10000,
        check_server_file};
}

Reader pooler_files()
{
    return {
        "pgbouncer",
        {"%include /etc/pgbouncer/users.ini\n; kept\n[databases]\nshard55 = host=/x\nshard5 = "
         "host=/run "
         "port=5432 dbname=postgres user=app connect_query='SELECT ''host=x port=1''' pool_size=4\n"
         "\"shard 7\"=host='a b' dbname = app\n* = host=other\n\n[pgbouncer]\nlisten_port = 6432\n"
         "shard6 = x\n",
         "[databases]\r\nshard6 = dbname=app port=6000  \r\n#shard5 = host=old\r\nshard5=\r\n"
         "[users]\r\n[databases]\r\nother = host=b auth_user='x'\r\n%include  other.ini  \r\n",
         "[databases]\nshard5 = host=/run port=5432 dbname=postgres",
         "[databases]\nshard5 = host=/run connect_query='shard5 = host=/evil"},
        {"[databases]", "[",       "]",        "[users]",    "%include",
         "%include ",   "shard5",  "shard5 =", "\"shard5\"", "\"",
         "shard6",      "host",    "host=",    "port",       "dbname",
         "dbname='",    "user=''", "'a''b'",   "= =",        "shard5 = host=x\n",
         "*",           "é"},
        10000,
        check_pooler_file};
}

Reader records()
{
    const std::string line = "    'photos.place', -- " + kHash + "\n";
    return {"record",
            {kRecordHead + kRecordEnd,
             kRecordHead + "    'photos.place' -- " + kHash + "\n" + kRecordEnd,
             kRecordHead + line + "    '10_\xc3\xa9 b.sql', -- " + std::string(64, 'f') +
                 "\n    'a name of several words that may be others', -- " + kHash +
                 "\n    '2_fill.sql' -- " + std::string(60, '0') + "1234\n" + kRecordEnd},
            {kRecordHead, kRecordEnd, line, " -- ", "    '", "',", "' -- ", "--", "ARRAY[", "]",
             kHash, "photos.place", "abcdef0123456789", "ABCDEF"},
            10000,
            check_record};
}

Reader weight_files()
{
    return {
        "weights",
        {"# writes per second\n1,900\n3,250\n4,200\n7,450\n",
         " 5 , 120.5 # photos\r\n\r\n8191,0\r\n"},
        {"0.0", ".", "1.", "9999", "10000", "999999999999999.999999999999999", "+1", "nan", "0x1"},
        4000,
        check_weights};
}

Reader shard_lists()
{
    return {"shards",
            {"0-7,9", "5", "8191,0-12,100-200", "4-4,3-3"},
            {"-", "--", ",,", "8191", "8192", "9999", "10000", "0-8191", "0005"},
            4000,
            check_shards};
}

Reader definitions()
{
    return {
        "definition",
        {"CREATE TABLE insta5.photos (\n    id bigint DEFAULT snowflake_next_id(5, "
         "'insta5.table_id_seq'::regclass) NOT NULL,\n    n integer DEFAULT 5,\n    CONSTRAINT c "
         "CHECK ((snowflake_shard(id) = 5))\n);\n",
         "CREATE FUNCTION insta5.f(a integer) RETURNS integer\n    LANGUAGE plpgsql\n    AS $_$\n"
         "-- insta5's\nBEGIN RETURN (SELECT count(*) FROM insta5.photos WHERE a = $1); END$_$;\n",
         "COMMENT ON SEQUENCE insta5.table_id_seq IS 'next ID of shard 5: it''s in insta5';\n",
         "CREATE VIEW \"Insta \"\"5\".v AS\n SELECT 'a''\"Insta \"\"5\".x' AS \"insta5.y\"\n"
         "   FROM \"Insta \"\"5\".photos\n  WHERE (snowflake_shard((id + (1))) = 12);\n"},
        {"insta5", "insta5.", R"("Insta ""5")", "12", "5", "shard => 5", ") = 5", "(", ")", "$$",
         "$_$", "$a", "--", "::regclass", "SCHEMA insta5", "\n    AS $", "snowflake_next_id(",
         "\x01", "\x02"},
        4000,
        check_marks};
}

} // namespace

std::vector<Reader> readers_of_command()
{
    return {plans(),        server_files(), pooler_files(), records(),
            weight_files(), shard_lists(),  definitions()};
}
