#include "definition/definition.h"

#include "base/interrupt.h"
#include "base/timeouts.h"
#include "definition/marks.h"
#include "definition/restored.h"
#include "definition/rows.h"
#include "postgres/sql_text.h"
#include "postgres/unread.h"

namespace
{

std::string object_of(const Entry& entry)
{
    return entry.type + " " + entry.name;
}

template <typename Changes>
std::vector<Difference> differences_of(const Changes& changes, const Shard& shard)
{
    std::vector<Difference> differences;
    for (const auto& [is_missing, entry] : changes)
        differences.push_back(
            {is_missing, unmark(object_of(entry), shard), unmark(entry.sql, shard)});
    return differences;
}

/* Tables and partitioned tables: pg_dump locks no other kind of relation. */
std::map<std::string, std::size_t> count_tables(Connection& connection)
{
    const Result rows = connection.query(R"(
        SELECT nspname, count(*) FROM pg_class JOIN pg_namespace AS n ON n.oid = relnamespace
        WHERE relkind IN ('r', 'p') AND )" +
                                         is_utf8_sql("nspname") + " GROUP BY nspname");
    std::map<std::string, std::size_t> counts;
    for (int i = 0; i < rows.rows(); i++)
        counts[rows.text(i, 0)] = static_cast<std::size_t>(rows.number(i, 1));
    return counts;
}

/* pg_dump reads the whole catalogue each time, so each run dumps many shards. It locks their
 * tables, and several databases of one server share a lock table, which has 6,400 places by
 * default. That is max_locks_per_transaction (64) times max_connections (100). One more is counted
 * for each shard, which limits the --schema options of a run. A shard with more tables than that is
 * a batch of its own. */
std::size_t end_of_batch(const std::vector<Shard>& shards, std::size_t begin,
                         const std::map<std::string, std::size_t>& tables)
{
    constexpr std::size_t kTables = 1000;
    const auto count = [&](std::size_t i) {
        const auto found = tables.find(shards[i].schema);
        return 1 + (found == tables.end() ? 0 : found->second);
    };
    std::size_t end = begin + 1;
    for (std::size_t sum = count(begin); end < shards.size(); end++) {
        sum += count(end);
        if (sum > kTables)
            break;
    }
    return end;
}

/* pg_dump locks tables, and reads sequences. */
std::string hint_for_dump(Connection& connection, const Shard& shard)
{
    const Result relations =
        connection.query("SELECT coalesce(array_agg(c.oid), '{}') FROM pg_class AS c "
                         "JOIN pg_namespace AS n ON n.oid = relnamespace "
                         "WHERE nspname = $1 AND relkind IN ('r', 'p', 'S')",
                         {shard.schema});
    return hint_for_unread(connection, relations.text(0, 0), false);
}

} // namespace

Definition::Definition(Connection& connection, Shard template_shard)
    : template_(std::move(template_shard)), archive_(connection, {template_.schema}),
      entries_(marked(split_dump(connection, {template_.schema}, archive_.text())[template_.schema],
                      template_))
{
}

/* The template's name is marked in texts of every shard: a clone has the bodies and comments of the
 * template as they are, and a body that was made for the shard has the shard's name there. Both are
 * equal. In all other places it is a reference to the template, and a difference. */
Entries Definition::marked(const Entries& entries, const Shard& shard) const
{
    Entries marked;
    for (const Entry& entry : entries) {
        marked.push_back(mark(entry, shard));
        mark_in_text(marked.back(), template_);
    }
    return marked;
}

std::vector<Definition::Change> Definition::changes_by(const KeyOf& key_of,
                                                       const Entries& present) const
{
    /* A multimap: two entries may have the same text. */
    std::multimap<std::string, const Entry*> left;
    for (const Entry& entry : present)
        left.emplace(key_of(entry), &entry);
    std::vector<Change> changes;
    for (const Entry& entry : entries_) {
        const auto found = left.find(key_of(entry));
        if (found != left.end())
            left.erase(found);
        else
            changes.push_back({true, entry});
    }
    /* The entries that only the shard has. A changed entry is in both lists. */
    for (const auto& [key, entry] : left)
        changes.push_back({false, *entry});
    return changes;
}

/* Both sides are brought to the text that a restore would write. For rewritings that as_restored()
 * does not know there is the copy, which was restored: its text is taken for the template's. diff
 * makes no copy, so it writes nothing. */
std::vector<Definition::Change> Definition::changes(const Entries& present) const
{
    return changes_by(
        [this](const Entry& entry) {
            const std::string text = as_restored(entry.sql);
            const auto found = in_copy_.find(text);
            return found == in_copy_.end() ? text : found->second;
        },
        present);
}

/* If pg_dump fails for the shards together, it is one of them: each half is dumped again. A wait
 * for a lock is short then. */
std::vector<Definition::Compared> Definition::compare_batch(Connection& connection,
                                                            const Shards& shards,
                                                            const std::string& lock_timeout) const
{
    std::vector<Compared> compared;
    try {
        auto entries = read_entries(connection, schemas_in(shards), lock_timeout);
        for (const Shard& shard : shards)
            compared.push_back({changes(marked(entries[shard.schema], shard))});
        return compared;
    } catch (const Failure& error) {
        stop_if_interrupted();
        connection.rollback();
        connection.run(""); /* throws if the server is lost */
        if (shards.size() == 1)
            return {{{}, error.what() + hint_for_dump(connection, shards[0])}};
    }
    const auto middle = shards.begin() + static_cast<std::ptrdiff_t>(shards.size() / 2);
    for (const Shards& half : {Shards(shards.begin(), middle), Shards(middle, shards.end())})
        for (Compared& one : compare_batch(connection, half, milliseconds_of(timeouts::kOneLock)))
            compared.push_back(std::move(one));
    return compared;
}

std::vector<Definition::Compared> Definition::compare(Connection& connection,
                                                      const Shards& shards) const
{
    connection.run(lock_timeout_sql(timeouts::kReadLock, false));
    const std::string lock_timeout = connection.query("SHOW lock_timeout").text(0, 0);
    const std::map<std::string, std::size_t> tables = count_tables(connection);
    std::vector<Compared> compared;
    for (std::size_t begin = 0, end = 0; begin < shards.size(); begin = end) {
        end = end_of_batch(shards, begin, tables);
        const auto first = shards.begin() + static_cast<std::ptrdiff_t>(begin);
        const auto last = shards.begin() + static_cast<std::ptrdiff_t>(end);
        for (Compared& one : compare_batch(connection, Shards(first, last), lock_timeout))
            compared.push_back(std::move(one));
    }
    return compared;
}

/* A shard of each kind is dumped. Its changes have marks, so those of the others of its kind are
 * the same, with their own names and numbers. If that shard cannot be dumped, each of its kind is.
 */
Differences Definition::find_different(Connection& connection, const Shards& shards,
                                       Progress& progress) const
{
    const std::vector<std::string> texts =
        read_rows(connection, shards, template_, [&] { progress.step(); });
    std::map<std::string, std::size_t> kind_of_text;
    std::vector<std::size_t> kinds; /* of the shards */
    Shards dumped;                  /* of each kind */
    for (std::size_t i = 0; i < shards.size(); i++) {
        const auto [kind, is_new] = kind_of_text.emplace(texts[i], dumped.size());
        if (is_new || texts[i].empty())
            kind->second = dumped.size();
        kinds.push_back(kind->second);
        if (kind->second == dumped.size())
            dumped.push_back(shards[i]);
    }
    std::vector<Compared> compared = compare(connection, dumped);
    Shards alone;
    for (std::size_t i = 0; i < shards.size(); i++)
        if (!compared[kinds[i]].error.empty() && dumped[kinds[i]].schema != shards[i].schema) {
            kinds[i] = compared.size() + alone.size();
            alone.push_back(shards[i]);
        }
    for (Compared& one : compare(connection, alone))
        compared.push_back(std::move(one));
    Differences found;
    for (std::size_t i = 0; i < shards.size(); i++) {
        const auto& [changes, error] = compared[kinds[i]];
        if (!error.empty())
            found.errors[error].insert(shards[i].number);
        else if (!changes.empty())
            found.shards.push_back({shards[i], differences_of(changes, shards[i])});
    }
    return found;
}

std::vector<Difference> Definition::compare_copy(Connection& connection, const Shard& copy,
                                                 const std::string& dump)
{
    Entries restored = marked(split_dump(connection, {copy.schema}, dump)[copy.schema], copy);
    /* The two texts of an object are put together by its type and name. They may differ in casts
     * and parentheses, which the server has then rewritten: the text of the copy is noted for
     * changes(). */
    std::multimap<std::string, std::string> left;
    for (const Entry& entry : restored)
        left.emplace(object_of(entry), as_restored(entry.sql));
    for (const Entry& entry : entries_) {
        const auto found = left.find(object_of(entry));
        if (found != left.end()) {
            in_copy_.emplace(as_restored(entry.sql), found->second);
            left.erase(found);
        }
    }
    /* An alias that is the template's name looks like the schema in the template. In the copy
     * nothing refers to the template, which was renamed when the copy was made. No shard has the
     * number -1, so only the name is marked. */
    const Shard no_number = {-1, template_.schema, template_.quoted};
    for (Entry& entry : restored)
        entry = mark(entry, no_number);
    return differences_of(
        changes_by([](const Entry& entry) { return without_casts(entry.sql); }, restored),
        template_);
}

std::vector<std::string> Definition::functions_naming_template() const
{
    std::vector<std::string> functions;
    for (const Entry& entry : entries_)
        /* A comment that names the template does no harm. A body does: a clone would use its
         * tables. */
        if (entry.type != "COMMENT" && is_marked_in_text(entry))
            functions.push_back(unmark(object_of(entry), template_));
    return functions;
}
