/* One session: it draws IDs in one of several ways, and writes down at once what it sees. */
#pragma once

#include "connection.h"
#include "history.h"
#include "options.h"

#include <endian.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <cmath>
#include <cstring>
#include <random>

namespace stress
{

/* What a client draws, from where, and in which portions. */
struct Load {
    Generator generator;
    Mode mode;
    std::size_t ids;
    std::size_t rows;
    int shard;
    std::string sequence;
    std::string original; /* the PL/pgSQL function, as it is called */
};

constexpr std::size_t kPipelineDepth = 64;

/* std::chrono::steady_clock is CLOCK_MONOTONIC. */
inline Instant now()
{
    return std::chrono::nanoseconds(std::chrono::steady_clock::now().time_since_epoch()).count();
}

class Client
{
public:
    /* Connects and prepares: all that a start at the same moment must not wait for. */
    Client(const std::string& conninfo, const Load& load, std::uint64_t seed, std::uint32_t number)
        : connection_(conninfo), load_(load), shard_(std::to_string(load.shard))
    {
        std::seed_seq mix{static_cast<std::uint32_t>(seed), static_cast<std::uint32_t>(seed >> 32),
                          number};
        random_.seed(mix);
        find_extension(connection_);
        const std::string call = one_id();
        prepare("one", "SELECT " + call);
        prepare("many", "SELECT " + call + " FROM generate_series(1, $3)");
        if (load_.generator == Generator::native)
            prepare("block", "SELECT * FROM snowflake_next_ids($1, $2, $3)");
        /* A vector that moves in the middle of the run would hold this client up. */
        history_.ids.reserve(load_.ids);
    }

    void run()
    {
        while (remaining() > 0)
            step(load_.mode, load_.rows);
    }

    History take_history() { return std::move(history_); }

private:
    std::size_t remaining() const { return load_.ids - history_.ids.size(); }

    std::string one_id() const
    {
        switch (load_.generator) {
        case Generator::native:
            return "snowflake_next_id($1, $2)";
        case Generator::plpgsql:
            return load_.original;
        case Generator::nextval:
            return "nextval($2)";
        }
        return "";
    }

    /* All statements take shard, sequence and rows, whether they use them or not. */
    void prepare(const char* name, const std::string& sql)
    {
        constexpr Oid kInt4 = 23;
        constexpr Oid kRegclass = 2205;
        const std::array<Oid, 3> types = {kInt4, kRegclass, kInt4};
        connection_.require(
            connection_.own(PQprepare(connection_.raw(), name, sql.c_str(), 3, types.data())), sql);
    }

    void step(Mode mode, std::size_t rows)
    {
        switch (mode) {
        case Mode::single:
            draw("one", 1);
            break;
        case Mode::batch:
            draw_pipeline();
            break;
        case Mode::statement:
            draw("many", rows);
            break;
        case Mode::next_ids:
            draw(load_.generator == Generator::native ? "block" : "many", rows);
            break;
        case Mode::mixed:
            mixed_step();
            break;
        }
    }

    /*
     * Some modes hold for a while and some only for one statement, in transactions of their own or
     * in one for several. A ROLLBACK takes back no ID, so those of rolled-back transactions count
     * like all others.
     */
    void mixed_step()
    {
        constexpr std::array<Mode, 4> kPure = {Mode::single, Mode::batch, Mode::statement,
                                               Mode::next_ids};
        const char* const ends[] = {nullptr, nullptr, "COMMIT", "ROLLBACK"};
        const char* const end = ends[below(std::size(ends))];
        if (end != nullptr)
            connection_.execute("BEGIN");
        const Mode mode = kPure[below(kPure.size())];
        const std::size_t repeats = 1 + below(mode == Mode::single ? 100 : 4);
        for (std::size_t i = 0; i < repeats && remaining() > 0; ++i)
            step(mode, some_rows());
        if (end != nullptr)
            connection_.execute(end);
    }

    /* Small statements as often as large ones: they meet each other at other places. */
    std::size_t some_rows()
    {
        std::uniform_real_distribution<double> exponent(0,
                                                        std::log(static_cast<double>(load_.rows)));
        return static_cast<std::size_t>(std::exp(exponent(random_)));
    }

    std::size_t below(std::size_t bound)
    {
        return std::uniform_int_distribution<std::size_t>(0, bound - 1)(random_);
    }

    /* One statement, one round trip. */
    void draw(const char* statement, std::size_t rows)
    {
        const std::string count = std::to_string(std::min(rows, remaining()));
        const Instant sent = now();
        const auto values = parameters(count);
        const Result result = connection_.own(PQexecPrepared(
            connection_.raw(), statement, kParameters, values.data(), nullptr, nullptr, kBinary));
        write_down(sent, result);
    }

    /*
     * Many statements in one round trip. libpq may send any of them as soon as it has it, and the
     * server answers in order: `sent` is at the latest when it went out, `seen` at the earliest
     * when it was done, so no order is claimed that there wasn't.
     */
    void draw_pipeline()
    {
        PGconn* const raw = connection_.raw();
        const std::string count = "1";
        const auto values = parameters(count);
        std::array<Instant, kPipelineDepth> sent;
        const std::size_t depth = std::min(kPipelineDepth, remaining());

        bool ok = PQenterPipelineMode(raw) == 1;
        for (std::size_t i = 0; i < depth; ++i) {
            sent[i] = now();
            ok = ok && PQsendQueryPrepared(raw, "one", kParameters, values.data(), nullptr, nullptr,
                                           kBinary) == 1;
        }
        if (!ok || PQpipelineSync(raw) != 1)
            connection_.fail("sending a pipeline");

        for (std::size_t i = 0; i < depth; ++i) {
            write_down(sent[i], connection_.own(PQgetResult(raw)));
            /* libpq marks the end of each statement's results by a null. */
            connection_.own(PQgetResult(raw));
        }
        connection_.require(connection_.own(PQgetResult(raw)), "ending a pipeline");
        if (PQexitPipelineMode(raw) != 1)
            connection_.fail("ending a pipeline");
    }

    /* Binary, as clients should leave the processor to the server. */
    static constexpr int kParameters = 3;
    static constexpr int kBinary = 1;

    std::array<const char*, kParameters> parameters(const std::string& count) const
    {
        return {shard_.c_str(), load_.sequence.c_str(), count.c_str()};
    }

    void write_down(Instant sent, const Result& result)
    {
        /* First of all: what comes later would only weaken the claim that A was seen before B. */
        const Instant seen = now();
        connection_.require(result, "drawing IDs");
        const int rows = PQntuples(result.get());
        history_.statements.push_back(
            {sent, seen, history_.ids.size(), static_cast<std::size_t>(rows)});
        for (int row = 0; row < rows; ++row) {
            std::uint64_t network_order = 0;
            std::memcpy(&network_order, PQgetvalue(result.get(), row, 0), sizeof(network_order));
            history_.ids.push_back(static_cast<Id>(be64toh(network_order)));
        }
    }

    Connection connection_;
    Load load_;
    std::string shard_;
    std::mt19937_64 random_;
    History history_;
};

} // namespace stress
