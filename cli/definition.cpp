#include "definition.h"

#include <algorithm>

#include "dump.h"
#include "marks.h"
#include "output.h"

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

} // namespace

Definition::Definition(std::string dsn, const Shard& template_shard)
    : dsn_(std::move(dsn)), template_(template_shard)
{
    Connection connection(dsn_);
    dump_ = dump_schemas(connection, {template_.schema});
    entries_ =
        marked(split_dump(connection, {template_.schema}, dump_)[template_.schema], template_);
}

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
    for (const auto& [key, entry] : left)
        changes.push_back({false, *entry});
    return changes;
}

std::vector<Definition::Change> Definition::changes(const Entries& present) const
{
    return changes_by(
        [this](const Entry& entry) {
            const auto found = restored_.find(entry.sql);
            return found == restored_.end() ? entry.sql : found->second;
        },
        present);
}

/* Whether both have an object, and the text of one of them has not been restored yet. */
bool Definition::may_be_written_otherwise(const std::vector<Change>& changes) const
{
    return std::any_of(changes.begin(), changes.end(), [&](const Change& one) {
        return restored_.count(one.entry.sql) == 0 &&
               std::any_of(changes.begin(), changes.end(), [&](const Change& other) {
                   return other.is_missing != one.is_missing &&
                          object_of(other.entry) == object_of(one.entry);
               });
    });
}

void Definition::note_restored(const Entries& entries, const Entries& restored)
{
    std::multimap<std::string, std::string> left;
    for (const Entry& entry : restored) {
        left.emplace(object_of(entry), entry.sql);
        restored_.emplace(entry.sql, entry.sql);
    }
    for (const Entry& entry : entries) {
        const auto found = left.find(object_of(entry));
        if (found != left.end()) {
            restored_.emplace(entry.sql, found->second);
            left.erase(found);
        }
    }
}

void Definition::restore(Connection& connection, const Shard& shard, const std::string& dump)
{
    try {
        Copy copy(dsn_, shard, dump);
        copy.renumber(shard.number);
        const std::string& name = copy.shard().schema;
        note_restored(marked(split_dump(connection, {shard.schema}, dump)[shard.schema], shard),
                      marked(read_entries(connection, {name})[name], copy.shard()));
    } catch (const ServerError& error) {
        can_restore_ = false;
        warn("expressions are compared as they are written, and can be the same although their "
             "text differs: " +
             std::string(error.what()));
    }
}

std::vector<DifferentShard> Definition::find_different(Connection& connection,
                                                       const std::vector<Shard>& shards)
{
    /* pg_dump reads the catalogue from end to end each time, and locks all the tables that it
     * dumps. */
    constexpr std::size_t kBatch = 100;
    Progress progress("compare", shards.size());
    std::vector<DifferentShard> different;
    for (std::size_t begin = 0; begin < shards.size(); begin += kBatch) {
        const std::size_t end = std::min(begin + kBatch, shards.size());
        std::vector<std::string> schemas;
        for (std::size_t i = begin; i < end; i++)
            schemas.push_back(shards[i].schema);
        auto entries = read_entries(connection, schemas);
        for (std::size_t i = begin; i < end; i++, progress.step()) {
            const Entries present = marked(entries[shards[i].schema], shards[i]);
            std::vector<Change> found = changes(present);
            for (const Shard& shard : {template_, shards[i]})
                if (can_restore_ && may_be_written_otherwise(found)) {
                    restore(connection, shard,
                            shard.schema == template_.schema
                                ? dump_
                                : dump_schemas(connection, {shard.schema}));
                    found = changes(present);
                }
            if (!found.empty())
                different.push_back({shards[i], differences_of(found, shards[i])});
        }
    }
    return different;
}

std::vector<Difference> Definition::compare_copy(Connection& connection, const Shard& copy)
{
    Entries restored = marked(read_entries(connection, {copy.schema})[copy.schema], copy);
    note_restored(entries_, restored);
    /* An alias that is the template's name looks like the schema in the template. In the copy
     * nothing refers to the template, which was renamed when the copy was made. */
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
        if (entry.type != "COMMENT" && is_marked_in_text(entry))
            functions.push_back(unmark(object_of(entry), template_));
    return functions;
}
