// IDs from a column's DEFAULT with libpq alone. Build: c++ -std=c++17 photos.cpp -o photos -lpq,
// with -I"$(pg_config --includedir)".
//
// PGHOST, PGDATABASE and the like name an empty database. If anything does not hold, the program
// says what, and exits with 1.
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <stdexcept>
#include <string>
#include <vector>

#include <libpq-fe.h>

namespace
{

using Ids = std::vector<std::int64_t>;

// pg_get_serial_sequence() finds the sequence because the column owns it.
constexpr auto kTable = R"(
CREATE EXTENSION IF NOT EXISTS snowflake;
CREATE SEQUENCE photos_id_seq;
CREATE TABLE photos (
    id      bigint PRIMARY KEY DEFAULT snowflake_next_id(0, 'photos_id_seq'),
    caption text NOT NULL);
ALTER SEQUENCE photos_id_seq OWNED BY photos.id;
)";

void check(bool holds, const std::string& problem)
{
    if (!holds) {
        throw std::runtime_error(problem);
    }
}

class Session
{
public:
    Session() : connection_(PQconnectdb(""))
    {
        check(PQstatus(connection_.get()) == CONNECTION_OK, PQerrorMessage(connection_.get()));
    }

    // Several statements without parameters.
    void run(const char* script)
    {
        const Result result(PQexec(connection_.get(), script));
        check_result(result.get());
    }

    // The first column of a statement with parameters.
    std::vector<std::string> select(const char* sql, const std::vector<std::string>& values = {})
    {
        std::vector<const char*> pointers;
        for (const auto& value : values) {
            pointers.push_back(value.c_str());
        }
        const Result result(PQexecParams(connection_.get(), sql, static_cast<int>(values.size()),
                                         nullptr, pointers.data(), nullptr, nullptr, 0));
        check_result(result.get());
        std::vector<std::string> column;
        for (int row = 0; row < PQntuples(result.get()); row++) {
            column.emplace_back(PQgetvalue(result.get(), row, 0));
        }
        return column;
    }

    // An ID fits into 64 bits with a sign: neither long, which has 32 in Windows, nor double.
    Ids select_ids(const char* sql, const std::vector<std::string>& values = {})
    {
        Ids ids;
        for (const auto& text : select(sql, values)) {
            ids.push_back(std::stoll(text));
        }
        return ids;
    }

    Ids insert(const std::string& caption, int count)
    {
        Ids ids;
        for (int i = 0; i < count; i++) {
            ids.push_back(
                select_ids("INSERT INTO photos (caption) VALUES ($1) RETURNING id", {caption})
                    .at(0));
        }
        return ids;
    }

private:
    struct Free {
        void operator()(PGconn* connection) const { PQfinish(connection); }
        void operator()(PGresult* result) const { PQclear(result); }
    };
    using Result = std::unique_ptr<PGresult, Free>;

    void check_result(const PGresult* result)
    {
        const auto status = PQresultStatus(result);
        check(status == PGRES_COMMAND_OK || status == PGRES_TUPLES_OK,
              PQerrorMessage(connection_.get()));
    }

    std::unique_ptr<PGconn, Free> connection_;
};

void check_increasing(const Ids& ids, const std::string& where)
{
    for (std::size_t i = 1; i < ids.size(); i++) {
        check(ids[i - 1] < ids[i],
              where + ": after " + std::to_string(ids[i - 1]) + " came " + std::to_string(ids[i]));
    }
}

// Each page begins after the last ID of the page before it.
Ids read_pages(Session& session, int size)
{
    Ids ids;
    for (std::int64_t last = 0;; last = ids.back()) {
        const auto page =
            session.select_ids("SELECT id FROM photos WHERE id > $1 ORDER BY id LIMIT $2",
                               {std::to_string(last), std::to_string(size)});
        if (page.empty()) {
            return ids;
        }
        ids.insert(ids.end(), page.begin(), page.end());
    }
}

void use(Session& session)
{
    session.run(kTable);
    auto ids = session.insert("by libpq", 25);
    check_increasing(ids, "INSERT");
    check(ids[0] >= std::int64_t{1} << 53,
          std::to_string(ids[0]) + " is a position or a counter, and no ID");
    check(read_pages(session, 10) == ids, "the pages do not have all IDs in order");

    // A back-dated row has the ID of its time.
    const auto old = session.select_ids("INSERT INTO photos VALUES (snowflake_encode('2024-02-29 "
                                        "12:00+00', 0, 0), 'old') RETURNING id");
    constexpr auto kBetween = "SELECT id FROM photos WHERE snowflake_between(id, $1, "
                              "$1::timestamptz + interval '2 minutes') ORDER BY id";
    const auto minute_ago = session.select("SELECT now() - interval '1 minute'").at(0);
    check(session.select_ids(kBetween, {minute_ago}) == ids, "the last minute has other IDs");
    check(session.select_ids(kBetween, {"2024-02-29 12:00+00"}) == old,
          "2024-02-29 12:00 has other IDs");

    // A row comes from a server whose clock is a second fast. Then the sequence is reset, as by
    // Rails' reset_pk_sequence!.
    const auto imported =
        session.select_ids("INSERT INTO photos VALUES (snowflake_encode(clock_timestamp() + "
                           "interval '1 second', 0, 0), 'imported') "
                           "RETURNING id");
    session.run("SELECT setval(pg_get_serial_sequence('photos', 'id'), max(id)) FROM photos");
    auto more = session.insert("after the reset", 10);
    more.insert(more.begin(), imported.at(0));
    check_increasing(more, "after a reset");

    // IDs that are drawn ahead: a row and those that refer to it are known before any is stored.
    auto ahead = session.select_ids("SELECT snowflake_next_ids(0, 'photos_id_seq', $1)", {"1000"});
    session.select("INSERT INTO photos VALUES ($1, 'drawn ahead')", {std::to_string(ahead.at(0))});
    ahead.insert(ahead.begin(), more.back());
    check_increasing(ahead, "drawn ahead");

    // In JSON an ID is a string: JavaScript rounds numbers of this size.
    const auto json = R"({"id": ")" + std::to_string(ids[24]) + R"("})";
    check(session.select_ids("SELECT id FROM photos WHERE id = ($1::json ->> 'id')::bigint",
                             {json}) == Ids{ids[24]},
          json + " is no photo");

    std::printf("libpq %d: %zu IDs by INSERT, %zu drawn ahead; the last one is %lld.\n",
                PQlibVersion(), ids.size() + more.size() - 1, ahead.size() - 1,
                static_cast<long long>(ahead.back()));
}

} // namespace

int main()
{
    try {
        Session session;
        use(session);
    } catch (const std::exception& error) {
        std::fprintf(stderr, "libpq: %s\n", error.what());
        return EXIT_FAILURE;
    }
}
