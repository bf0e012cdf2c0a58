/* The schema that --setup makes and drops: two sequences and the PL/pgSQL original. */
#pragma once

#include "connection.h"
#include "options.h"

#include <unistd.h>

namespace stress
{

/* As published by Instagram in 2011, except for the names. */
constexpr const char* kOriginal = R"(
CREATE FUNCTION {function} RETURNS bigint LANGUAGE plpgsql AS $$
DECLARE
    our_epoch bigint := 1314220021721;
    seq_id bigint;
    now_millis bigint;
    shard_id int := {shard};
    result bigint;
BEGIN
    SELECT nextval('{sequence}') % 1024 INTO seq_id;
    SELECT FLOOR(EXTRACT(EPOCH FROM clock_timestamp()) * 1000) INTO now_millis;
    result := (now_millis - our_epoch) << 23;
    result := result | (shard_id << 10);
    result := result | (seq_id);
    RETURN result;
END $$)";

class Scratch
{
public:
    explicit Scratch(const Options& options)
        : connection_(options.conninfo),
          /* Concurrent runs need their own sequences: each run sees only its own IDs. */
          schema_("snowflake_stress_" + std::to_string(getpid()))
    {
        connection_.execute("SET client_min_messages = warning");
        /* One transaction: the destructor does not run if the constructor throws. */
        connection_.execute("BEGIN");
        connection_.execute("CREATE SCHEMA " + schema_);
        /* If the database lacks the extension, it goes into our schema and is dropped with it. */
        connection_.execute("CREATE EXTENSION IF NOT EXISTS snowflake SCHEMA " + schema_);
        for (const std::string& sequence : {native_sequence(), legacy_sequence()})
            connection_.execute("CREATE SEQUENCE " + sequence);
        set_cache(options.cache);
        create_original(options.shard);
        connection_.execute("COMMIT");
    }

    /* Drops the schema after an error too. A destructor must not throw. */
    ~Scratch()
    {
        try {
            connection_.execute("DROP SCHEMA " + schema_ + " CASCADE");
        } catch (const SqlError& error) {
            std::cerr << "stress: " << error.what();
        }
    }

    Scratch(const Scratch&) = delete;
    Scratch& operator=(const Scratch&) = delete;

    /* One for each generator: two generators on one sequence are promised nothing. */
    std::string native_sequence() const { return schema_ + ".native_id_seq"; }
    std::string legacy_sequence() const { return schema_ + ".table_id_seq"; }
    std::string original() const { return schema_ + ".next_id()"; }

    void set_cache(int cache) const
    {
        for (const std::string& sequence : {native_sequence(), legacy_sequence()})
            connection_.execute("ALTER SEQUENCE " + sequence + " CACHE " + std::to_string(cache));
    }

private:
    void create_original(int shard) const
    {
        std::string sql = kOriginal;
        const auto fill_in = [&sql](const std::string& mark, const std::string& value) {
            sql.replace(sql.find(mark), mark.size(), value);
        };
        fill_in("{function}", original());
        fill_in("{shard}", std::to_string(shard));
        fill_in("{sequence}", legacy_sequence());
        connection_.execute(sql);
    }

    Connection connection_;
    std::string schema_;
};

} // namespace stress
