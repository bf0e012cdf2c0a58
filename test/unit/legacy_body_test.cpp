/*
 * The reader of PL/pgSQL ID functions: what it reads in the published body and its variants, and
 * that whatever it does not wholly understand is refused, at the right line and for the right
 * reason. Most bodies are the published one with an edit or two, so that a row shows just them.
 */
#include "legacy_body.h"

#include <gtest/gtest.h>

#include "random_seed.h"

#include <algorithm>
#include <cctype>
#include <string>
#include <utility>
#include <vector>

namespace
{

using snowflake::legacy::read;
using snowflake::legacy::Reading;

const std::string kPublished = R"(
DECLARE
    our_epoch bigint := 1314220021721;
    seq_id bigint;
    now_millis bigint;
    shard_id int := 5;
BEGIN
    SELECT nextval('insta5.table_id_seq') %% 1024 INTO seq_id;

    SELECT FLOOR(EXTRACT(EPOCH FROM clock_timestamp()) * 1000) INTO now_millis;
    result := (now_millis - our_epoch) << 23;
    result := result | (shard_id << 10);
    result := result | (seq_id);
END;
)";

/* In one expression, for a function that RETURNS bigint. Without %%, so that it runs as it is. */
const std::string kOneExpression = R"(
BEGIN
    RETURN ((floor(extract(epoch from clock_timestamp()) * 1000)::bigint - 1314220021721) << 23)
         | (5 << 10)
         | (nextval('insta5.table_id_seq') % 1024);
END
)";

const std::string kPublishedEpoch = "1314220021721";

/* Every `from` must be there, or the row would test nothing; all its occurrences are replaced. */
using Edits = std::vector<std::pair<std::string, std::string>>;
std::string edited(std::string text, const Edits& edits)
{
    for (const auto& [from, to] : edits) {
        std::size_t at = text.find(from);
        EXPECT_NE(at, std::string::npos) << "nothing to edit: " << from;
        for (; at != std::string::npos; at = text.find(from, at + to.size()))
            text.replace(at, from.size(), to);
    }
    return text;
}

void expect_read(const std::string& body, const std::string& out_parameter, std::int64_t epoch,
                 std::int64_t shard, const std::string& sequence)
{
    const Reading reading = read(body, out_parameter);
    ASSERT_TRUE(reading.ok) << "line " << reading.line << ", near \"" << reading.near
                            << "\": " << reading.problem << "\n"
                            << body;
    EXPECT_EQ(raw(reading.epoch), epoch);
    EXPECT_EQ(reading.shard, shard);
    EXPECT_EQ(reading.sequence, sequence);
}

void expect_published_values(const std::string& body, const std::string& out_parameter)
{
    expect_read(body, out_parameter, 1314220021721, 5, "insta5.table_id_seq");
}

void expect_refused(const std::string& body, const std::string& out_parameter, int line,
                    const std::string& near, const std::string& problem)
{
    const Reading reading = read(body, out_parameter);
    ASSERT_FALSE(reading.ok) << body;
    EXPECT_EQ(reading.line, line) << reading.problem << "\n" << body;
    EXPECT_EQ(reading.near, near) << reading.problem << "\n" << body;
    EXPECT_NE(std::string(reading.problem).find(problem), std::string::npos)
        << reading.problem << "\n"
        << body;
}

TEST(LegacyBody, ReadsThePublishedFunction)
{
    expect_published_values(kPublished, "result");
    expect_published_values(kOneExpression, "");
}

TEST(LegacyBody, ReadsVariantsOfThePublishedFunction)
{
    const std::vector<Edits> variants = {
        {{"%%", "%"}},
        {{"nextval('insta5.table_id_seq') %% 1024", "mod(nextval('insta5.table_id_seq'), 1024)"}},
        {{"%% 1024", "& 1023"}},
        {{"%% 1024", "% (1024)::bigint"}},
        {{"seq') %%", "seq'::regclass) %"}},
        {{"'insta5.table_id_seq'", "('insta5.table_id_seq'::text)::regclass"}},
        {{"'insta5.table_id_seq'", "(('insta5.table_id_seq'))"}},
        {{"clock_timestamp()", "now()"}},
        {{"clock_timestamp()", "current_timestamp"}},
        {{"clock_timestamp()", "statement_timestamp()"}},
        {{"clock_timestamp()", "TRANSACTION_TIMESTAMP ( )"}},
        {{"clock_timestamp()", "clock_timestamp()::timestamptz"}},
        {{"EPOCH FROM", "'epoch' from"}},
        {{"EXTRACT(EPOCH FROM clock_timestamp())", "date_part('epoch', clock_timestamp())"}},
        {{"EXTRACT(EPOCH FROM clock_timestamp()) * 1000", "1000 * extract(epoch from now())"}},
        {{"* 1000", "* 1000.0"}},
        {{"FLOOR", "trunc"}},
        {{"FLOOR", "round"}},
        {{"FLOOR", ""}}, /* the assignment to bigint rounds it */
        {{"FLOOR(EXTRACT(EPOCH FROM clock_timestamp()) * 1000)",
          "CAST(EXTRACT(EPOCH FROM clock_timestamp()) * 1000 AS bigint)"}},
        {{"now_millis bigint", "now_millis numeric"}, {"our_epoch)", "our_epoch)::bigint"}},
        {{"now_millis bigint", "now_millis double precision"},
         {"(now_millis", "(now_millis::int8"}},
        {{"our_epoch bigint", "our_epoch numeric"}, {"our_epoch)", "our_epoch::bigint)"}},
        {{"bigint", "int8"}, {"int :=", "integer :="}},
        {{"shard_id int", "shard_id bigint"}},
        {{"shard_id int", "shard_id CONSTANT int4"}},
        {{"shard_id int", "shard_id int not null"}},
        {{":=", "="}},
        {{":= 5", "DEFAULT 5"}},
        {{"shard_id int := 5;", "shard_id int;"}, {"BEGIN", "BEGIN shard_id := 5;"}},
        {{"(shard_id << 10)", "(5 << 10)"}},
        {{"our_epoch)", "1314220021721)"}},
        {{"our_epoch", "\"our Epoch\""}},
        {{"now_millis", "when_it_is"}, {"seq_id", "_n$1"}, {"shard_id", "Epoch"}},
        {{"bigint;\n    now", "bigint; -- a comment; END;\n    now"}},
        {{"BEGIN", "BEGIN /* one /* nested */ result := 1; */"}},
        {{"\n", "\r\n"}},
        {{"\n", " "}},
        {{"* 1000", "*/* ms */1000"}, {"result | (s", "result |-- shifted\n (s"}},
        {{":= 5", ":= -5 *-1"}},
        {{"DECLARE", "declare"}, {"SELECT", "select"}, {"END;", "end"}},
        {{"seq_id bigint;", "DECLARE seq_id bigint;"}},
        {{"result | (seq_id)", "result + seq_id"}},
        {{"result | (shard_id << 10)", "(shard_id << 10) + result"}},
        {{"(now_millis - our_epoch) << 23", "now_millis - our_epoch << 23"}},
        {{"<< 23", "<< (64 - 41)"}, {"<< 10", "<< (64-41-13)"}},
        {{"(now_millis - our_epoch) << 23", "((((now_millis)) - (our_epoch)) << 20) << 3"}},
        {{"END;", "    RETURN;\nEND;"}},
        {{"seq_id bigint", "seq_id bigint := 0"}},
        {{"SELECT nextval('insta5.table_id_seq') %% 1024 INTO seq_id",
          "SELECT INTO STRICT seq_id nextval('insta5.table_id_seq') % 1024"}},
        {{"SELECT nextval('insta5.table_id_seq') %% 1024 INTO seq_id",
          "seq_id := (SELECT nextval('insta5.table_id_seq') % 1024)"}},
        {{"SELECT nextval('insta5.table_id_seq') %% 1024 INTO seq_id",
          "seq_id := nextval('insta5.table_id_seq')"},
         {"(seq_id)", "(seq_id % 1024)"}},
        {{"now_millis bigint;",
          "at timestamp with time zone = now(); now_millis bigint := extract(epoch from at)*1000;"},
         {"SELECT FLOOR(EXTRACT(EPOCH FROM clock_timestamp()) * 1000) INTO now_millis;", ""}},
        /* Horner's form, and all at once */
        {{"<< 23", "<< 13"}, {"result | (shard_id << 10)", "(result | shard_id) << 10"}},
        {{"result := (now_millis - our_epoch) << 23;\n", ""},
         {"result := result | (shard_id << 10);\n", ""},
         {"result := result | (seq_id);",
          "result := seq_id | (shard_id << 10) | (now_millis - our_epoch << 23);"}},
    };
    for (const Edits& edits : variants)
        expect_published_values(edited(kPublished, edits), "result");
}

TEST(LegacyBody, ReadsWhatIsReturned)
{
    const Edits declared = {{"shard_id int", "result bigint; shard_id int"}};
    const std::string body = edited(kPublished, declared);
    expect_published_values(edited(body, {{"END;", "RETURN result; END;"}}), "");
    expect_published_values(edited(body, {{"END;", "RETURN (result)::bigint; END"}}), "");
    expect_published_values(
        edited(body, {{"result := result | (seq_id);", "RETURN result | seq_id;"}}), "");
    expect_published_values(edited(kPublished, {{"result", "\"The ID\""}}), "The ID");
    expect_published_values(edited(kPublished, {{"result", "New_Id"}}), "new_id");
}

TEST(LegacyBody, ReadsOtherNumbersAndSequences)
{
    struct Row {
        const char* epoch;
        const char* shard;
        const char* sequence;
        std::int64_t epoch_value;
        std::int64_t shard_value;
    };
    const Row rows[] = {
        {"0", "0", "s", 0, 0},
        {"1387263000000", "1341", R"("Insta 5"."table_id_seq")", 1387263000000, 1341},
        {"1000.", "8191", "Insta8191.Table_Id_Seq", 1000, 8191},
        {"-1", "8191", "a.b", -1, 8191},
        {"1314220021::bigint * 1000 + 721", "31341 - 15 * 2000", "x", 1314220021721, 1341},
        {"9223372036854775807", "-1", "x", INT64_MAX, -1},
        {"-9223372036854775807 - 1", "2147483647", "x", INT64_MIN, INT32_MAX},
    };
    for (const Row& row : rows) {
        const std::string body =
            edited(kPublished, {{kPublishedEpoch, row.epoch},
                                {"int := 5", std::string("int := ") + row.shard},
                                {"insta5.table_id_seq", row.sequence}});
        expect_read(body, "result", row.epoch_value, row.shard_value, row.sequence);
    }
}

struct Refused {
    Edits edits;
    int line;
    const char* near;
    const char* problem;
};

void expect_all_refused(const std::vector<Refused>& rows)
{
    for (const Refused& row : rows)
        expect_refused(edited(kPublished, row.edits), "result", row.line, row.near, row.problem);
}

TEST(LegacyBody, RefusesOtherLayouts)
{
    expect_all_refused({
        {{{"<< 23", "<< 22"}}, 11, "<<", "time is not shifted by 23"},
        {{{"<< 23", "<< 87"}}, 11, "<<", "0 to 63 bits"},
        {{{"<< 23", "<< 33 << -10"}}, 11, "<<", "0 to 63 bits"},
        {{{"<< 23", "<< 63 << 24"}}, 11, "<<", "time is not shifted by 23"},
        {{{"<< 23", "<< 23::bigint"}}, 11, "<<", "of type integer"},
        {{{"<< 10", "<< 12"}}, 12, "<<", "shard is not shifted by 10"},
        {{{" << 10", ""}}, 14, "END", "shard is not shifted by 10"},
        {{{"%% 1024", "% 4096"}}, 8, "%", "another layout"},
        {{{"%% 1024", "& 1024"}}, 8, "&", "another layout"},
        {{{"(seq_id)", "(seq_id << 1)"}}, 13, "<<", "lowest 10 bits"},
        {{{"<< 23", "* 8388608"}}, 11, "*", "multiplied"},
        /* the precedence of SQL, not that of C */
        {{{"(shard_id << 10)", "shard_id << 10"}}, 12, "<<", "time is not shifted by 23"},
        {{{"(now_millis - our_epoch) << 23", "(now_millis - our_epoch) << 22 + 1"},
          {"result | (shard_id << 10)", "result | shard_id << 10"}},
         12,
         "<<",
         "time is not shifted by 23"},
        {{{"result | (shard_id << 10)", "result + (shard_id << 10) << 0 | 1"}},
         12,
         "|",
         "two numbers"},
    });
}

TEST(LegacyBody, RefusesAnIncompleteOrAmbiguousId)
{
    expect_all_refused({
        {{{"result := result | (shard_id << 10);", ""}}, 14, "END", "shard is missing"},
        {{{"result := result | (seq_id);", ""}}, 14, "END", "counter"},
        {{{"(now_millis - our_epoch) << 23", "shard_id << 10"},
          {"result | (shard_id << 10)", "result"}},
         14,
         "END",
         "time is missing"},
        {{{"result := result | (seq_id)", "seq_id := result | seq_id"}}, 14, "END", "counter"},
        {{{"result | (shard_id", "(shard_id"}, {"| (seq_id)", "| seq_id"}},
         14,
         "END",
         "time is missing"},
        {{{"(now_millis - our_epoch)", "now_millis"}}, 11, "<<", "without an epoch"},
        {{{"%% 1024", ""}}, 13, "|", "% 1024"},
        {{{"| (seq_id)", "| seq_id | seq_id"}}, 13, "|", "twice"},
        {{{"| (shard_id << 10)", "| (shard_id << 10) | 1"}}, 12, "|", "two numbers"},
        {{{"| (seq_id)", "| seq_id | result"}}, 13, "|", "time goes into the ID twice"},
        {{{"| (seq_id)", "& (seq_id)"}}, 13, "&", "only nextval()"},
        {{{"| (seq_id)", "# (seq_id)"}}, 13, "#", "goes on"},
        {{{"| (seq_id)", "|| (seq_id)"}}, 13, "||", "goes on"},
        {{{"| (seq_id)", "- (seq_id)"}}, 13, "-", "only a number"},
        {{{"| (seq_id)", "|-seq_id"}}, 13, "|-", "goes on"},
        {{{"| (shard_id", "| -(shard_id"}}, 12, "-", "sign"},
        {{{"result | (seq_id)", "1"}}, 14, "END", "not an ID"},
        {{{"result := (", "result := 1; result := ("}, {"result | (s", "(s"}},
         14,
         "END",
         "missing"},
    });
}

TEST(LegacyBody, RefusesAnotherClock)
{
    expect_all_refused({
        {{{" * 1000", ""}}, 10, "FLOOR", "whole seconds"},
        {{{"FLOOR(", "("}, {" * 1000", ""}}, 10, "SELECT", "whole seconds"},
        {{{"FLOOR(EXTRACT(EPOCH FROM clock_timestamp()) * 1000)",
           "FLOOR(EXTRACT(EPOCH FROM clock_timestamp())) * 1000"}},
         10,
         "FLOOR",
         "whole seconds"},
        {{{"clock_timestamp()) * 1000", "clock_timestamp())::bigint * 1000"}},
         10,
         "::",
         "whole seconds"},
        {{{"* 1000", "* 100"}}, 10, "*", "* 1000"},
        {{{"* 1000", "* 1000000"}}, 10, "*", "* 1000"},
        {{{"* 1000", "/ 1000"}}, 10, "/", "goes on"},
        {{{"FLOOR(", "FLOOR(("}, {"clock_timestamp())", "now()) - 1314220021)"}},
         10,
         "-",
         "in seconds"},
        {{{"clock_timestamp()", "now() - 1314220021"}}, 10, "-", "converted"},
        {{{"EPOCH FROM", "MILLISECONDS FROM"}}, 10, "MILLISECONDS", "only the epoch"},
        {{{"EPOCH FROM", "'century' FROM"}}, 10, "'century'", "only the epoch"},
        {{{"EXTRACT(EPOCH FROM", "date_part('second',"}}, 10, "'second'", "only the epoch"},
        {{{"clock_timestamp()", "clock_timestamp() AT TIME ZONE 'utc'"}}, 10, "AT", "goes on"},
        {{{"clock_timestamp()", "clock_timestamp()::timestamp"}}, 10, "timestamp", "only types"},
        {{{"clock_timestamp()", "localtimestamp"}}, 10, "localtimestamp", "neither a variable"},
        {{{"clock_timestamp()", "current_timestamp(0)"}}, 10, "(", "goes on"},
        {{{"clock_timestamp()", "timeofday()"}}, 10, "timeofday", "no function"},
        {{{"clock_timestamp()", "\"now\"()"}}, 10, "\"now\"", "no function"},
        {{{"clock_timestamp()", "public.now()"}}, 10, "public", "neither a variable"},
        {{{"clock_timestamp()", "now_millis"}}, 10, "now_millis", "before it has a value"},
        {{{"clock_timestamp()", "our_epoch"}}, 10, "our_epoch", "as it is"},
        {{{"FLOOR", "ceil"}}, 10, "ceil", "no function"},
        {{{"FLOOR", "abs"}}, 10, "abs", "no function"},
        {{{"now_millis bigint", "now_millis int"}}, 10, "SELECT", "do not fit type integer"},
        {{{"now_millis bigint", "now_millis numeric"}}, 11, "<<", "for integers only"},
        {{{"now_millis bigint", "now_millis real"}}, 5, "real", "only types"},
        {{{"now_millis bigint;", "now_millis bigint; t timestamptz := now();"}},
         10,
         "clock_timestamp",
         "read twice"},
        {{{"(now_millis", "(extract(epoch from now()) * 1000"}}, 11, "now", "read twice"},
    });
}

TEST(LegacyBody, RefusesAnotherSequence)
{
    expect_all_refused({
        {{{"'insta5.table_id_seq'", "seq_name"}}, 8, "seq_name", "plain string"},
        {{{"'insta5.table_id_seq'", "TG_ARGV[0]"}}, 8, "TG_ARGV", "plain string"},
        {{{"'insta5.table_id_seq'", "16385"}}, 8, "16385", "plain string"},
        {{{"'insta5.table_id_seq'", "'insta' || 5"}}, 8, "||", "goes on"},
        {{{"'insta5.table_id_seq'", "E'insta5.table_id_seq'"}}, 8, "E", "without a prefix"},
        {{{"'insta5.table_id_seq'", "U&'insta5.table_id_seq'"}}, 8, "U", "without a prefix"},
        {{{"'insta5.table_id_seq'", "$x$insta5.table_id_seq$x$"}}, 8, "$", "plain string"},
        {{{"'insta5.table_id_seq'", "'it''s'"}}, 8, "'it''", "doubled"},
        {{{"'insta5.table_id_seq'", "'a\\b'"}}, 8, "a\\b", "backslash"},
        {{{"'insta5.table_id_seq'", "'insta5.'\n'table_id_seq'"}}, 9, "'table_id_seq'", "goes on"},
        {{{"table_id_seq'", "table_id_seq'::name"}}, 8, "name", "text or a regclass"},
        {{{"_seq') %%", "_seq')::float8 %"}}, 8, "::", "double precision"},
        {{{"seq_id bigint", "seq_id float8"}}, 8, "SELECT", "double precision"},
        {{{"nextval", "currval"}}, 8, "currval", "no function"},
        {{{"nextval", "setval"}}, 8, "setval", "no function"},
        {{{"nextval", "pg_catalog.nextval"}}, 8, "pg_catalog", "neither a variable"},
        {{{"(seq_id)", "nextval('x') % 1024"}}, 13, "nextval", "called twice"},
        {{{"seq_id bigint", "seq_id bigint := nextval('insta5.table_id_seq')"}},
         8,
         "nextval",
         "called twice"},
        {{{"nextval('insta5.table_id_seq') %% 1024", "5001"}}, 13, "|", "two numbers"},
        {{{"nextval('insta5.table_id_seq')", "random()"}}, 8, "random", "no function"},
        {{{"nextval('insta5.table_id_seq')", "our_epoch"}}, 8, "%%", "only nextval()"},
    });
}

TEST(LegacyBody, RefusesAnotherShardOrEpoch)
{
    expect_all_refused({
        {{{":= 5", ":= 5; shard_id int := 6"}}, 6, "shard_id", "declared already"},
        {{{"BEGIN", "BEGIN shard_id := 6;"}}, 7, "shard_id", "given another"},
        {{{"BEGIN", "BEGIN our_epoch := 0;"}}, 7, "our_epoch", "given another"},
        {{{"shard_id int", "shard_id constant int"}, {"BEGIN", "BEGIN SELECT 6 INTO shard_id;"}},
         7,
         "shard_id",
         "constant is assigned"},
        {{{":= 5", ":= inet_server_port()"}}, 6, "inet_server_port", "no function"},
        {{{":= 5", ":= current_setting('my.shard')::int"}}, 6, "current_setting", "no function"},
        {{{":= 5", ":= (SELECT id FROM shards)"}}, 6, "id", "neither a variable"},
        {{{":= 5", ":= (SELECT 5 FROM shards)"}}, 6, "FROM", "goes on"},
        {{{":= 5", ":= '5'"}}, 6, "'5'", "expression is expected"},
        {{{":= 5", ":= 5.5"}}, 6, "5.5", "whole decimal"},
        {{{":= 5", ":= 0x5"}}, 6, "0x5", "whole decimal"},
        {{{":= 5", ":= 5_0"}}, 6, "5_0", "whole decimal"},
        {{{":= 5", ":= 7 / 2"}}, 6, "/", "not a declaration"},
        {{{":= 5", ":= 2147483648"}}, 6, "2147483648", "does not fit"},
        {{{":= 5", ":= 65536 * 65536"}}, 6, "*", "does not fit"},
        {{{":= 5", ":= NULL"}}, 6, "NULL", "neither a variable"},
        {{{":= 5", ":= $1"}}, 6, "$", "expression is expected"},
        {{{" := 5", ""}}, 12, "shard_id", "before it has a value"},
        {{{" := 5", " NOT NULL"}}, 6, ";", "needs a value"},
        {{{"shard_id int", "shard_id smallint"}}, 6, "smallint", "only types"},
        {{{"shard_id int", "shard_id numeric(4)"}}, 6, "(", "not a declaration"},
        {{{"shard_id int", "shard_id int[]"}}, 6, "[", "not a declaration"},
        {{{"shard_id int", "shard_id \"int\""}}, 6, "\"int\"", "only types"},
        {{{"shard_id int", "shard_id t.id%TYPE"}}, 6, "t", "only types"},
        {{{"shard_id int", "shard_id int COLLATE x"}}, 6, "COLLATE", "not a declaration"},
        {{{"shard_id int", "shard_id numeric"}}, 12, "<<", "for integers only"},
        {{{kPublishedEpoch, "99999999999999999999"}}, 3, "99999999999999999999", "larger"},
        {{{kPublishedEpoch, "1314220021 * 1000"}}, 3, "*", "does not fit"},
        {{{"our_epoch bigint", "our_epoch int"}}, 3, kPublishedEpoch.c_str(), "does not fit"},
        {{{"our_epoch bigint := 1314220021721", "our_epoch timestamptz := now()"}},
         10,
         "clock_timestamp",
         "read twice"},
        {{{"- our_epoch", "- seq_id"}}, 11, "-", "only a number"},
        {{{"- our_epoch", "- our_epoch - 1"}}, 11, "-", "milliseconds of the clock only"},
    });
}

TEST(LegacyBody, RefusesStatementsThatItDoesNotKnow)
{
    const auto inserted = [](const std::string& statement, const char* near, const char* problem) {
        SCOPED_TRACE(statement);
        expect_refused(edited(kPublished, {{"END;", statement + "\nEND;"}}), "result", 14, near,
                       problem);
    };
    const char* const unknown = "only assignments";
    inserted("PERFORM setval('insta5.table_id_seq', 1);", "PERFORM", unknown);
    inserted("IF result < 0 THEN result := 1; END IF;", "IF", unknown);
    inserted("LOOP EXIT; END LOOP;", "LOOP", unknown);
    inserted("FOR i IN 1..2 LOOP result := 1; END LOOP;", "FOR", unknown);
    inserted("WHILE false LOOP NULL; END LOOP;", "WHILE", unknown);
    inserted("EXECUTE 'SELECT 1' INTO result;", "EXECUTE", unknown);
    inserted("RAISE NOTICE '%', result;", "RAISE", unknown);
    inserted("DECLARE shard_id int := 6; BEGIN result := 0; END;", "DECLARE", unknown);
    inserted("BEGIN result := 0; END;", "BEGIN", unknown);
    inserted("<<inner>>", "<<", unknown);
    inserted("EXCEPTION WHEN others THEN result := 0;", "EXCEPTION", unknown);
    inserted("INSERT INTO log VALUES (result);", "INSERT", unknown);
    inserted("NULL;", "NULL", unknown);
    inserted(";", ";", unknown);
    inserted("other := 1;", "other", unknown);
    inserted("next_id.result := 1;", "next_id", unknown);
    inserted("result.a := 1;", "result", unknown);
    inserted("result[1] := 1;", "result", unknown);
    inserted("STRICT result := 1;", "STRICT", unknown);
    inserted("$1 := 1;", "$", unknown);
    inserted("result := result FROM t;", "FROM", "goes on");
    inserted("result := result x;", "x", "goes on");
    inserted("result := result > 0;", ">", "goes on");
    inserted("result := result, 1;", ",", "goes on");
    inserted("result := ;", ";", "expression is expected");
    inserted("result := result seq_id := 1;", "seq_id", "goes on");
    inserted("SELECT result;", ";", "SELECT of one expression");
    inserted("SELECT result, 1 INTO result, seq_id;", ",", "SELECT of one expression");
    inserted("SELECT result FROM t INTO result;", "FROM", "SELECT of one expression");
    inserted("SELECT result INTO result FROM t;", "FROM", "SELECT of one expression");
    inserted("SELECT result INTO result LIMIT 0;", "LIMIT", "SELECT of one expression");
    inserted("SELECT result INTO other;", "other", unknown);
    inserted("SELECT DISTINCT result INTO result;", "DISTINCT", "neither a variable");
    inserted("SELECT;", ";", "expression is expected");
    inserted("RETURN result;", "result", "not a RETURN");
    inserted("RETURN NEXT;", "NEXT", "not a RETURN");
    inserted("RETURN; result := 1;", "result", "follows RETURN");
    inserted("RETURN; RETURN;", "RETURN", "follows RETURN");
}

TEST(LegacyBody, RefusesAnotherFrame)
{
    const std::string& body = kPublished;
    const auto refused = [](const std::string& text, const std::string& out, int line,
                            const char* near, const char* problem) {
        expect_refused(text, out, line, near, problem);
    };
    refused("", "result", 1, "", "BEGIN is expected");
    refused("SELECT 1", "result", 1, "SELECT", "BEGIN is expected");
    refused(body + "x", "result", 15, "x", "follows the end");
    refused(edited(body, {{"END;", "END x;"}}), "result", 14, "x", "follows the end");
    refused(edited(body, {{"END;", "END;;"}}), "result", 14, ";", "follows the end");
    refused(edited(body, {{"END;", ""}}), "result", 15, "", "only assignments");
    refused("#variable_conflict use_column\n" + body, "result", 1, "#", "BEGIN is expected");
    refused("<<b>>" + body, "result", 1, "<<", "BEGIN is expected");

    /* the OUT parameter: its name, a declaration that hides it, RETURN in its place */
    refused(body, "id", 11, "result", "only assignments");
    refused(body, "", 11, "result", "only assignments");
    refused(body, "Result", 11, "result", "only assignments");
    refused(edited(body, {{"seq_id bigint", "Result bigint"}}), "result", 4, "Result",
            "declared already");
    refused(edited(body, {{"shard_id int", "result bigint; shard_id int"}}), "", 14, "END",
            "no RETURN");
    refused(edited(kOneExpression, {{"(5 << 10)", "(5 << 11)"}}), "", 4, "<<", "another layout");
    refused("BEGIN RETURN; END", "", 1, ";", "expression is expected");
    refused("BEGIN END", "", 1, "END", "no RETURN");
    refused("BEGIN END", "id", 1, "END", "not an ID");
    refused("BEGIN RETURN 1.0; END", "", 1, "RETURN", "not an ID");

    /* comments, quotes and names in which the text is not what it seems */
    refused(edited(body, {{"shard_id int := 5;", "/* shard_id int := 5;"}}), "result", 6, "/*",
            "not closed");
    refused(edited(body, {{"BEGIN", "BEGIN -- x\rshard_id := 6;\n"}}), "result", 7, "shard_id",
            "given another");
    refused(edited(body, {{"(seq_id)", "\"seq_id)"}}), "result", 13, "\"", "not closed");
    refused(edited(body, {{"(seq_id)", "\"Seq_id\""}}), "result", 13, "\"Seq_id\"", "neither");
    refused(edited(body, {{"(seq_id)", R"("seq""id")"}}), "result", 13, R"("seq"")", "doubled");
    refused(edited(body, {{"(seq_id)", "u&\"seq_id\""}}), "result", 13, "u", "without a prefix");
    refused(edited(body, {{"seq_id", "s\xc3\xa9q"}}), "result", 4, "s\xc3\xa9q", "outside ASCII");
    refused(edited(body, {{"seq_id", std::string(64, 'a')}}), "result", 4,
            std::string(64, 'a').c_str(), "63 bytes");
    refused(edited(body, {{"seq_id", "\"" + std::string(64, 'a') + "\""}}), "result", 4,
            std::string(64, 'a').c_str(), "63 bytes");
    refused(edited(body, {{"seq_id", "\"\""}}), "result", 4, "", "1 to 63 bytes");
    refused(edited(body, {{"shard_id", "user"}}), "result", 6, "user", "name is expected");
    refused(edited(body, {{"result", "user"}}), "user", 11, "user", "only assignments");
    refused(edited(body, {{"result :=", "\"user\" :="}, {"result", "user"}}), "user", 12, "user",
            "neither a variable");
}

TEST(LegacyBody, RefusesMoreThanItHoldsRoomFor)
{
    const auto nested = [](std::size_t depth) {
        return edited(kPublished,
                      {{"(seq_id)", std::string(depth, '(') + "seq_id" + std::string(depth, ')')}});
    };
    expect_published_values(nested(40), "result");
    expect_refused(nested(1000000), "result", 13, "(", "nested too deeply");

    const auto declared = [](int count) {
        std::string variables;
        for (int i = 0; i < count; ++i)
            variables += "v" + std::to_string(i) + " int; ";
        return edited(kPublished, {{"BEGIN", variables + "BEGIN"}});
    };
    expect_published_values(declared(32 - 5), "result");
    expect_refused(declared(32 - 4), "result", 7, "v27", "too many variables");
}

/* The token that begins at `at`: blanks, a word, a literal or a symbol. */
std::size_t token_length(const std::string& text, std::size_t at)
{
    const auto run = [&](const std::string& set) {
        const std::size_t end = text.find_first_not_of(set, at);
        return (end == std::string::npos ? text.size() : end) - at;
    };
    if (const std::size_t blanks = run(" \r\n"); blanks > 0)
        return blanks;
    if (const std::size_t word = run("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ_"
                                     "0123456789");
        word > 0)
        return word;
    if (const std::size_t end = text.find('\'', at + 1); text[at] == '\'' && end < text.size())
        return end + 1 - at;
    const std::string pair = text.substr(at, 2);
    return pair == ":=" || pair == "<<" || pair == "::" ? 2 : 1;
}

/* Together they are the text. */
std::vector<std::string> in_tokens(const std::string& text)
{
    std::vector<std::string> tokens;
    for (std::size_t at = 0; at < text.size(); at += tokens.back().size())
        tokens.push_back(text.substr(at, token_length(text, at)));
    return tokens;
}

std::string joined(const std::vector<std::string>& tokens)
{
    std::string text;
    for (const std::string& token : tokens)
        text += token;
    return text;
}

TEST(LegacyBody, NeedsEveryTokenOfThePublishedFunction)
{
    const std::vector<std::string> all = in_tokens(edited(kPublished, {{"%%", "%"}}));
    ASSERT_GT(all.size(), 100U);
    std::vector<std::string> not_needed;
    for (std::size_t i = 0; i < all.size(); ++i) {
        std::vector<std::string> others = all;
        others.erase(others.begin() + static_cast<std::ptrdiff_t>(i));
        if (std::isspace(all[i][0]) == 0 && read(joined(others), "result").ok)
            not_needed.push_back(all[i]);
    }
    /* The assignment rounds without floor() too; END needs no semicolon. */
    EXPECT_EQ(not_needed, (std::vector<std::string>{"FLOOR", ";"}));
}

class Mutations
{
public:
    explicit Mutations(const char* test) : random_(seeded_random(test)) {}

    std::string mutated(const std::string& body)
    {
        std::vector<std::string> tokens = in_tokens(body);
        for (std::size_t n = 1 + below(4); n > 0; --n)
            mutate(tokens);
        std::string text = joined(tokens);
        if (below(3) == 0 && !text.empty())
            text[below(text.size())] = static_cast<char>(below(256));
        if (below(50) == 0)
            text.resize(below(text.size() + 1));
        return text;
    }

private:
    std::size_t below(std::size_t end) { return random_() % end; }

    void mutate(std::vector<std::string>& tokens)
    {
        static const std::vector<std::string> pool = in_tokens(
            edited(kPublished, {{"%%", "%%%&||+#::int8.0,[]\"$/**/--\n<<<-5 -RETURN(SELECT("
                                       "CAST(AS numeric)\\ ''\x01\xff"}}));
        if (tokens.empty())
            tokens.emplace_back("x");
        std::string& one = tokens[below(tokens.size())];
        switch (below(4)) {
        case 0:
            one.clear();
            break;
        case 1:
            one += one;
            break;
        case 2:
            one.swap(tokens[below(tokens.size())]);
            break;
        default:
            one = pool[below(pool.size())];
        }
    }

    std::mt19937_64 random_;
};

TEST(LegacyBody, SurvivesRandomMutations)
{
    Mutations mutations("LegacyBody.SurvivesRandomMutations");
    for (int i = 0; i < 20000; ++i) {
        const std::string body = mutations.mutated(i % 2 == 0 ? kPublished : kOneExpression);
        /* A copy of the exact size, so that the sanitizer sees a read past its end. */
        const std::vector<char> exact(body.begin(), body.end());
        const std::string_view view(exact.data(), exact.size());
        const Reading reading = read(view, i % 2 == 0 ? "result" : "");

        ASSERT_EQ(reading.ok, reading.problem == nullptr) << body;
        if (reading.ok) {
            const std::string literal = "'" + std::string(reading.sequence) + "'";
            EXPECT_NE(body.find(literal), std::string::npos) << body;
        } else {
            const auto lines = 1 + std::count(body.begin(), body.end(), '\n');
            EXPECT_GE(reading.line, 1) << body;
            EXPECT_LE(reading.line, lines) << body;
            EXPECT_NE(body.find(std::string(reading.near)), std::string::npos) << body;
        }
    }
}

} // namespace
