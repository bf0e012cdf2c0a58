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
    void run(const char* script) { take(PQexec(connection_.get(), script)); }

    // The first column. An ID takes std::int64_t: long has 32 bits on Windows, and double rounds.
    Ids select(const char* sql, const std::vector<std::string>& values = {})
    {
        std::vector<const char*> pointers;
        for (const auto& value : values) {
            pointers.push_back(value.c_str());
        }
        const auto rows = take(PQexecParams(connection_.get(), sql, static_cast<int>(values.size()),
                                            nullptr, pointers.data(), nullptr, nullptr, 0));
        Ids ids;
        for (int row = 0; row < PQntuples(rows.get()); row++) {
            ids.push_back(std::stoll(PQgetvalue(rows.get(), row, 0)));
        }
        return ids;
    }

private:
    struct Free {
        void operator()(PGconn* connection) const { PQfinish(connection); }
        void operator()(PGresult* result) const { PQclear(result); }
    };

    std::unique_ptr<PGresult, Free> take(PGresult* result)
    {
        std::unique_ptr<PGresult, Free> owned(result);
        const auto status = PQresultStatus(result);
        check(status == PGRES_COMMAND_OK || status == PGRES_TUPLES_OK,
              PQerrorMessage(connection_.get()));
        return owned;
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

Ids insert(Session& session, const std::string& caption, int count)
{
    Ids ids;
    for (int i = 0; i < count; i++) {
        const auto* sql = "INSERT INTO photos (caption) VALUES ($1) RETURNING id";
        ids.push_back(session.select(sql, {caption}).at(0));
    }
    return ids;
}

// Each page begins after the last ID of the page before it.
Ids read_pages(Session& session)
{
    Ids ids;
    for (Ids page{0}; !page.empty(); ids.insert(ids.end(), page.begin(), page.end())) {
        page = session.select("SELECT id FROM photos WHERE id > $1 ORDER BY id LIMIT 10",
                              {std::to_string(ids.empty() ? 0 : ids.back())});
    }
    return ids;
}

// Returns the IDs of the new rows.
Ids use_ids(Session& session)
{
    auto ids = insert(session, "by libpq", 25);
    check_increasing(ids, "INSERT");
    check(ids[0] >= std::int64_t{1} << 53,
          std::to_string(ids[0]) + " is a position or a counter, and no ID");
    check(read_pages(session) == ids, "the pages do not have all IDs in order");

    // A back-dated row has the ID of its time.
    const auto old = session.select(R"(
        INSERT INTO photos VALUES (snowflake_encode('2024-02-29 12:00+00', 0, 0), 'old')
        RETURNING id)");
    check(session.select(R"(
        SELECT id FROM photos WHERE id >= snowflake_min_id(now() - interval '1 minute')
        ORDER BY id)") == ids,
          "the last minute has other IDs");
    check(session.select(R"(
        SELECT id FROM photos
        WHERE snowflake_between(id, '2024-02-29 12:00+00', '2024-02-29 12:01+00'))") == old,
          "2024-02-29 12:00 has other IDs");
    return ids;
}

void use(Session& session)
{
    session.run(kTable);
    const Ids ids = use_ids(session);

    // A row comes from a server whose clock is a second fast. Then the sequence is reset, by the
    // statements of Rails' reset_pk_sequence!.
    auto later = session.select(R"(
        INSERT INTO photos
        VALUES (snowflake_encode(clock_timestamp() + interval '1 second', 0, 0), 'imported')
        RETURNING id)");
    const auto last = session.select(R"(SELECT MAX("id") FROM "photos")").at(0);
    session.select(R"(SELECT setval('"public"."photos_id_seq"', $1, true))",
                   {std::to_string(last)});
    const auto more = insert(session, "after the reset", 10);
    later.insert(later.end(), more.begin(), more.end());

    // IDs that are drawn ahead: a row and those that refer to it are known before any is stored.
    const auto ahead = session.select("SELECT snowflake_next_ids(0, 'photos_id_seq', 1000)");
    session.select("INSERT INTO photos VALUES ($1, 'drawn ahead')", {std::to_string(ahead.at(0))});
    later.insert(later.end(), ahead.begin(), ahead.end());
    check_increasing(later, "after a reset");

    // In JSON an ID is a string: JavaScript rounds numbers of this size.
    const auto json = R"({"id": ")" + std::to_string(last) + R"("})";
    check(session.select("SELECT ($1::json ->> 'id')::bigint", {json}) == Ids{last},
          json + " is read as another ID");

    std::printf("libpq %d: %zu IDs by INSERT, %zu drawn ahead; the last one is %lld.\n",
                PQlibVersion(), ids.size() + more.size(), ahead.size(),
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
