/* One session: it draws IDs in one of several modes and records what it sees. */
#pragma once

#include "checker.h"
#include "connection.h"
#include "options.h"

#include <endian.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <chrono>
#include <cmath>
#include <cstring>
#include <random>
#include <thread>

namespace stress
{

/* What a client draws, from which sequence, and how many IDs at a time. */
struct Load {
    Generator generator;
    Mode mode;
    std::size_t ids;
    std::size_t rows;
    int shard;
    std::string sequence;
    std::string original; /* the call of the PL/pgSQL function */
    bool asynchronous;    /* commits do not wait for their flush */
    int rest_ms;          /* average pause after each step */
    std::size_t memory;   /* bytes that what it has seen may take */
};

/* Shared with the thread that started the client: counters to read, flags to set. */
struct Progress {
    std::atomic<std::size_t> ids{0};
    std::atomic<std::size_t> statements{0};
    std::atomic<bool> stopping{false};
    std::atomic<bool> forsaken{false}; /* IDs seen from now on do not count as committed */
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
    /* Connects and prepares, so that run() draws at once and all clients start together. */
    Client(const std::string& conninfo, const Load& load, std::uint64_t seed, std::uint32_t number,
           Progress& progress)
        : connection_(conninfo), load_(load), shard_(std::to_string(load.shard)),
          progress_(progress)
    {
        std::seed_seq mix{static_cast<std::uint32_t>(seed), static_cast<std::uint32_t>(seed >> 32),
                          number};
        random_.seed(mix);
        find_extension(connection_);
        if (load_.asynchronous)
            connection_.execute("SET synchronous_commit = off");
        const std::string call = one_id();
        prepare("one", "SELECT " + call);
        prepare("many", "SELECT " + call + " FROM generate_series(1, $3)");
        if (load_.generator == Generator::native)
            prepare("block", "SELECT * FROM snowflake_next_ids($1, $2, $3)");
    }

    void run()
    {
        while (remaining() > 0 && !progress_.stopping) {
            if (bytes_left() < load_.memory / 2)
                save_memory();
            else
                step(load_.mode, load_.rows);
            if (load_.rest_ms > 0)
                rest();
        }
    }

    History take_history() { return std::move(history_); }

private:
    std::size_t remaining() const { return load_.ids - history_.ids.size(); }

    /* Of all sessions of this client. */
    std::size_t bytes_left() const
    {
        const std::size_t used =
            progress_.ids * kBytesOfId + progress_.statements * kBytesOfStatement;
        return load_.memory > used ? load_.memory - used : 1;
    }

    /*
     * One ID, and then a rest so long that at this rate the memory left would last kHorizon. So it
     * never ends, however long the test runs.
     */
    void save_memory()
    {
        constexpr std::chrono::duration<double> kHorizon = std::chrono::minutes(10);
        step(Mode::single, 1);
        const auto share =
            static_cast<double>(kBytesOfId + kBytesOfStatement) / static_cast<double>(bytes_left());
        std::this_thread::sleep_for(std::min(share, 1.0) * kHorizon);
    }

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

    /* All statements have the parameters shard, sequence and rows, used or not. */
    void prepare(const char* name, const std::string& sql)
    {
        constexpr Oid kInt4 = 23;
        constexpr Oid kRegclass = 2205;
        const std::array<Oid, 3> types = {kInt4, kRegclass, kInt4};
        connection_.require(own(PQprepare(connection_.raw(), name, sql.c_str(), 3, types.data())),
                            sql);
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
        case Mode::rows:
            draw_row_by_row(rows);
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
     * A random mode for several statements, each in a transaction of its own, or all in one. A
     * ROLLBACK gives no ID back, so the IDs of rolled-back transactions are checked like all
     * others.
     */
    void mixed_step()
    {
        constexpr std::array<Mode, 5> kPure = {Mode::single, Mode::batch, Mode::rows,
                                               Mode::statement, Mode::next_ids};
        const std::size_t end = below(4);
        const bool commits = end == 2;
        const bool rolls_back = end == 3;
        if (commits || rolls_back)
            begin();
        const Mode mode = kPure[below(kPure.size())];
        const std::size_t repeats = 1 + below(mode == Mode::single ? 100 : 4);
        for (std::size_t i = 0; i < repeats && remaining() > 0 && !progress_.stopping; ++i)
            step(mode, some_rows());
        if (commits)
            commit();
        else if (rolls_back)
            roll_back();
    }

    void begin()
    {
        connection_.execute("BEGIN");
        open_since_ = history_.statements.size();
    }

    void commit()
    {
        connection_.execute("COMMIT");
        seen_committed(open_since_);
        open_since_ = kNoTransaction;
    }

    void roll_back()
    {
        connection_.execute("ROLLBACK");
        open_since_ = kNoTransaction;
    }

    /* For all statements from index `first` on. */
    void seen_committed(std::size_t first)
    {
        for (std::size_t i = first; i < history_.statements.size(); ++i)
            history_.statements[i].durable = !load_.asynchronous && !progress_.forsaken;
    }

    bool in_transaction() const { return open_since_ != kNoTransaction; }

    /* Log-uniform: small statements as often as large ones. They interleave at other points. */
    std::size_t some_rows()
    {
        std::uniform_real_distribution<double> exponent(0,
                                                        std::log(static_cast<double>(load_.rows)));
        return static_cast<std::size_t>(std::exp(exponent(random_)));
    }

    void rest()
    {
        const auto ms = below(2 * static_cast<std::size_t>(load_.rest_ms) + 1);
        std::this_thread::sleep_for(std::chrono::milliseconds(ms));
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
        const Result result = own(PQexecPrepared(connection_.raw(), statement, kParameters,
                                                 values.data(), nullptr, nullptr, kBinary));
        write_down(sent, result);
        if (!in_transaction())
            seen_committed(history_.statements.size() - 1);
    }

    /* Each row is recorded when it arrives, most rows before their transaction commits. */
    void draw_row_by_row(std::size_t rows)
    {
        PGconn* const raw = connection_.raw();
        const std::string count = std::to_string(std::min(rows, remaining()));
        const std::size_t first = history_.statements.size();
        const auto values = parameters(count);
        const Instant sent = now();
        if (PQsendQueryPrepared(raw, "many", kParameters, values.data(), nullptr, nullptr,
                                kBinary) != 1 ||
            PQsetSingleRowMode(raw) != 1)
            connection_.fail("sending a statement");
        write_down_all(sent);
        if (!in_transaction())
            seen_committed(first);
    }

    /*
     * Many statements in one round trip. `sent` is read before libpq can send the statement, `seen`
     * after the server has executed it. So the checker never assumes an order that did not exist.
     */
    void draw_pipeline()
    {
        PGconn* const raw = connection_.raw();
        const std::string count = "1";
        const auto values = parameters(count);
        std::array<Instant, kPipelineDepth> sent;
        const std::size_t depth = std::min(kPipelineDepth, remaining());
        const std::size_t first = history_.statements.size();

        bool ok = PQenterPipelineMode(raw) == 1;
        for (std::size_t i = 0; i < depth; ++i) {
            sent[i] = now();
            ok = ok && PQsendQueryPrepared(raw, "one", kParameters, values.data(), nullptr, nullptr,
                                           kBinary) == 1;
        }
        if (!ok || PQpipelineSync(raw) != 1)
            connection_.fail("sending a pipeline");

        for (std::size_t i = 0; i < depth; ++i)
            write_down_all(sent[i]);
        connection_.require(own(PQgetResult(raw)), "ending a pipeline");
        if (PQexitPipelineMode(raw) != 1)
            connection_.fail("ending a pipeline");
        /* The statements of a pipeline up to its end are one transaction. */
        if (!in_transaction())
            seen_committed(first);
    }

    /* Binary results, to leave CPU time to the server. */
    static constexpr int kParameters = 3;
    static constexpr int kBinary = 1;

    std::array<const char*, kParameters> parameters(const std::string& count) const
    {
        return {shard_.c_str(), load_.sequence.c_str(), count.c_str()};
    }

    /*
     * All results of a statement, up to the null that libpq returns at the end. A pipeline's first
     * statement can have several results too: it inherits the single-row mode of the statement
     * before the pipeline.
     */
    void write_down_all(Instant sent)
    {
        while (const Result result = own(PQgetResult(connection_.raw())))
            write_down(sent, result);
    }

    void write_down(Instant sent, const Result& result)
    {
        /* Read first: from a later time the checker could conclude less about the order. */
        const Instant seen = now();
        connection_.require(result, "drawing IDs");
        const int rows = PQntuples(result.get());
        history_.statements.push_back(
            {sent, seen, history_.ids.size(), static_cast<std::size_t>(rows), false});
        for (int row = 0; row < rows; ++row) {
            std::uint64_t network_order = 0;
            std::memcpy(&network_order, PQgetvalue(result.get(), row, 0), sizeof(network_order));
            history_.ids.push_back(static_cast<Id>(be64toh(network_order)));
        }
        progress_.ids += static_cast<std::size_t>(rows);
        ++progress_.statements;
    }

    static constexpr std::size_t kNoTransaction = SIZE_MAX;

    Connection connection_;
    Load load_;
    std::string shard_;
    std::mt19937_64 random_;
    History history_;
    std::size_t open_since_ = kNoTransaction; /* index of the open transaction's first statement */
    Progress& progress_;
};

} // namespace stress
