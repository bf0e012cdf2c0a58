/* query --then: the rows of all shards in a temporary table of one server, and a query over it. */

#pragma once

#include <map>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "postgres/copy_in.h"
#include "postgres/servers.h"
#include "verbs/row_sink.h"
#include "verbs/verbs.h"

/* An error of the table or of the query over it: there is no sense in asking more shards. */
struct ThenError : std::runtime_error {
    using std::runtime_error::runtime_error;
};

/* All is one transaction: it works behind a pooler that gives a server connection for each, and
 * leaves nothing behind. */
class GatheredRows : public RowSink
{
public:
    /* dsn: of the server with the table. */
    GatheredRows(const std::string& dsn, const QueryOptions& options);

    void begin(const Shard& shard, const std::vector<Column>& columns) override;
    void add(std::size_t place, std::vector<Row> rows) override;
    void end(std::size_t) override {}
    /* Prints the rows of the query. */
    void finish(bool is_complete) override;

private:
    using Types = std::vector<std::string>;

    Types types_of(const std::vector<Column>& columns) const;
    void make_table(const std::vector<std::string>& names, const Types& types);
    void try_query();
    std::string declare() const;
    void print_query();

    const QueryOptions& options_;
    Server server_;
    std::map<unsigned int, std::string> known_; /* types that rows can have, by their OID */
    std::mutex lock_;
    std::string problem_; /* of the table or the query */
    std::optional<CopyIn> copy_;
    Shard first_ = {}; /* the shard that decided the columns */
    std::vector<std::string> names_;
    Types types_;
};
