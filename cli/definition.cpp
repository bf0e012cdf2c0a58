#include "definition.h"

#include <algorithm>
#include <map>

#include "lexer.h"
#include "output.h"

namespace
{

/* Marks in the text: bytes that no statement has. */
constexpr char kName = '\1';         /* the schema's name as an identifier */
constexpr char kNameInString = '\2'; /* the same within a string: 'insta5.table_id_seq' */
constexpr char kNameInText = '\3';   /* the bare name in a function's text */
constexpr char kNumber = '\4';

bool is_word_part(char c)
{
    return std::isalnum(static_cast<unsigned char>(c)) || c == '_' || (c & 0x80) != 0;
}

/* Replaces the word where it stands alone, in strings and comments, too. */
std::string replace_word(std::string text, const std::string& word, char mark)
{
    for (std::size_t at = 0; (at = text.find(word, at)) != std::string::npos; at++) {
        const std::size_t end = at + word.size();
        if ((at == 0 || !is_word_part(text[at - 1])) &&
            (end == text.size() || !is_word_part(text[end])))
            text.replace(at, word.size(), 1, mark);
    }
    return text;
}

std::string doubled_quotes(const std::string& text)
{
    std::string doubled;
    for (const char c : text)
        doubled.append(c == '\'' ? 2 : 1, c);
    return doubled;
}

/* Sets the marks into an entry. */
class Marker
{
public:
    Marker(const std::string& sql, const Shard& origin, const std::string& text_schema)
        : origin_(origin), text_schema_(text_schema), number_(std::to_string(origin.number))
    {
        for (const Token& token : tokens_of(sql)) {
            if (token.kind != TokenKind::blank)
                tokens_.push_back({token.kind, texts_.size()});
            texts_.emplace_back(token.text);
        }
    }

    std::string marked()
    {
        for (std::size_t i = 0; i < tokens_.size(); i++)
            mark(i);
        std::string sql;
        for (const std::string& text : texts_)
            sql += text;
        return sql;
    }

private:
    struct Position {
        TokenKind kind;
        std::size_t text;
    };

    /* The text of a token; empty before the first and behind the last. */
    std::string word(std::size_t i) const
    {
        return i < tokens_.size() ? lower(texts_[tokens_[i].text]) : "";
    }

    void mark(std::size_t i)
    {
        std::string& text = texts_[tokens_[i].text];
        const std::string in_string = doubled_quotes(origin_.quoted);
        const std::string prefix = "'" + in_string + ".";
        const bool is_object = word(i + 1) == ":" && word(i + 3).compare(0, 3, "reg") == 0;
        if (tokens_[i].kind == TokenKind::dollar)
            text = replace_word(text, text_schema_, kNameInText);
        else if (is_object && text.compare(0, prefix.size(), prefix) == 0)
            text.replace(1, in_string.size(), 1, kNameInString); /* 'insta5.seq'::regclass */
        else if (word(i - 1) == "is" && text == "'next ID of shard " + number_ + "'")
            text = std::string("'next ID of shard ") + kNumber + "'"; /* snowflake_create_shard() */
        else if (text == origin_.quoted && word(i - 1) != "." &&
                 (word(i + 1) == "." || word(i - 1) == "schema"))
            text = kName;
        else if (word(i + 1) == "(")
            mark_number(word(i), i + 2);
    }

    /* snowflake_next_id(5, ...), snowflake_next_id(shard => 5, ...), snowflake_shard(id) = 5 */
    void mark_number(const std::string& function, std::size_t at)
    {
        if (function == "snowflake_shard") {
            for (int depth = 1; at < tokens_.size() && depth > 0; at++)
                depth += word(at) == "(" ? 1 : word(at) == ")" ? -1 : 0;
            if (word(at++) != "=")
                return;
        } else if (function != "snowflake_next_id" && function != "snowflake_next_ids") {
            return;
        } else if (word(at) == "shard") {
            at += 3; /* shard, =, > */
        }
        if (word(at) == number_)
            texts_[tokens_[at].text] = kNumber;
    }

    const Shard& origin_;
    const std::string& text_schema_;
    const std::string number_;
    std::vector<std::string> texts_;
    std::vector<Position> tokens_;
};

std::string render(const std::string& marked, const Shard& shard, const std::string& text_schema)
{
    std::string sql;
    for (const char c : marked) {
        if (c == kName)
            sql += shard.quoted;
        else if (c == kNameInString)
            sql += doubled_quotes(shard.quoted);
        else if (c == kNameInText)
            sql += text_schema;
        else if (c == kNumber)
            sql += std::to_string(shard.number);
        else
            sql += c;
    }
    return sql;
}

} // namespace

Definition::Definition(Entries dump, const Shard& origin, const std::string& text_schema)
    : entries_(std::move(dump)), text_schema_(text_schema)
{
    for (Entry& entry : entries_)
        entry.sql = Marker(entry.sql, origin, text_schema).marked();
}

std::string Definition::sql_for(const Shard& shard) const
{
    return render(sql_of(entries_), shard, text_schema_);
}

std::vector<Difference> Definition::compare(const Entries& dump, const Shard& shard) const
{
    std::multimap<std::string, const Entry*> present;
    for (const Entry& entry : dump)
        present.emplace(entry.sql, &entry);

    std::vector<Difference> differences;
    for (const Entry& entry : entries_) {
        const std::string sql = render(entry.sql, shard, text_schema_);
        auto found = present.find(sql);
        if (found == present.end())
            found = present.find(render(entry.sql, shard, shard.schema));
        if (found != present.end())
            present.erase(found);
        else
            differences.push_back({true, entry.type + " " + entry.name, sql});
    }
    for (const auto& [sql, entry] : present)
        differences.push_back({false, entry->type + " " + entry->name, sql});
    return differences;
}

bool Definition::names_schema(const Entry& entry) const
{
    return entry.sql.find(kNameInText) != std::string::npos ||
           entry.sql.find("SET search_path TO '" + text_schema_ + "'") != std::string::npos;
}

void compare_shards(
    Connection& connection, const Definition& definition, const std::vector<Shard>& shards,
    const std::function<void(const Shard&, const std::vector<Difference>&)>& differs)
{
    /* pg_dump reads the catalogue from end to end each time, and locks all the tables that it
     * dumps. */
    constexpr std::size_t kBatch = 100;
    Progress progress("compare", shards.size());
    for (std::size_t begin = 0; begin < shards.size(); begin += kBatch) {
        const std::size_t end = std::min(begin + kBatch, shards.size());
        std::vector<std::string> schemas;
        for (std::size_t i = begin; i < end; i++)
            schemas.push_back(shards[i].schema);
        auto dumps = dump_schemas(connection, schemas);
        for (std::size_t i = begin; i < end; i++) {
            const auto differences = definition.compare(dumps[shards[i].schema], shards[i]);
            if (!differences.empty())
                differs(shards[i], differences);
            progress.step();
        }
    }
}
