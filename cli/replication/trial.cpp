#include "replication/trial.h"

#include <algorithm>
#include <set>

#include "base/timeouts.h"
#include "fleet/catalog.h"
#include "postgres/restore.h"
#include "postgres/security.h"
#include "postgres/settings.h"
#include "postgres/sql_text.h"
#include "replication/subscription.h"

namespace
{

/* Decides the hint if the statement fails. */
enum class Kind { shard, subscription, object };

struct Statement {
    Kind kind;
    std::string title;
    std::string sql;
    std::string hint{};
};

class Trial
{
public:
    /* sole_owner, made: see restore.h. */
    Trial(Connection& target, std::vector<std::string> schemas, std::string sole_owner,
          std::string made = "{}", AgreedRights agreed = {"{}"})
        : target_(target), schemas_(std::move(schemas)), sole_owner_(std::move(sole_owner)),
          made_(std::move(made)), agreed_(std::move(agreed))
    {
    }

    /* Stops at the first error. */
    Obstacles find_first(const std::vector<Statement>& statements)
    {
        begin();
        Obstacles found;
        for (auto one = statements.begin(); one != statements.end() && found.empty(); ++one)
            try {
                run(*one);
            } catch (const ServerError& error) {
                found.add(target_.server(), one->title + ": " + message_of(error),
                          hint_of(*one, error));
            }
        target_.rollback();
        return found;
    }

    Obstacles find_obstacles(const std::vector<Statement>& statements)
    {
        begin();
        for (const Statement& statement : statements)
            try_statement(statement);
        target_.rollback();
        return found_;
    }

private:
    void begin()
    {
        target_.run("BEGIN; SET LOCAL lock_timeout = " + milliseconds_of(timeouts::kTrialLock));
        hide_statements(target_);
    }

    void run(const Statement& statement)
    {
        if (statement.kind != Kind::object) {
            target_.run(statement.sql);
            return;
        }
        restore(target_, statement.sql, sole_owner_);
        require_no_gained_rights(target_, made_, agreed_);
    }

    void add(const std::string& problem, const std::string& hint)
    {
        found_.add(target_.server(), problem, hint);
    }

    void try_statement(const Statement& statement)
    {
        /* Without the savepoint the first error would end the transaction, and with it the objects
         * that the next statements need. */
        target_.run("SAVEPOINT statement");
        try {
            run(statement);
            target_.run("RELEASE statement");
        } catch (const ServerError& error) {
            target_.run("ROLLBACK TO statement");
            note_error(statement, error);
        }
    }

    /* An error that names one of the schemas follows from an earlier one; the first error is
     * printed in any case. The same text is printed once: one missing type can make many statements
     * fail. */
    void note_error(const Statement& statement, const ServerError& error)
    {
        const std::string message = message_of(error);
        const bool is_consequence =
            std::any_of(schemas_.begin(), schemas_.end(), [&](const std::string& schema) {
                return message.find(schema + ".") != std::string::npos ||
                       message.find("\"" + schema + "\"") != std::string::npos;
            });
        if ((is_consequence && !errors_.empty()) || !errors_.insert(message).second)
            return;
        add(visible(statement.title) + ": " + message, hint_of(statement, error));
    }

    /* The first line, without ERROR. */
    static std::string message_of(const ServerError& error)
    {
        const std::string text = error.what();
        const std::size_t begin = text.find(":  ");
        const std::size_t from = begin == std::string::npos ? 0 : begin + 3;
        return text.substr(from, text.find('\n', from) - from);
    }

    static std::string hint_in(const std::string& text)
    {
        const std::string mark = "\nHINT:  ";
        return text.substr(text.find(mark) + mark.size());
    }

    std::string hint_of(const Statement& statement, const ServerError& error) const
    {
        if (error.sqlstate == kGainedRight)
            return hint_in(error.what());
        if (error.sqlstate == kLockTimeout)
            return "A table that it refers to is busy there. Try again.";
        if (statement.kind == Kind::shard)
            return "Drop that schema there, if it is not used.";
        /* The same SQLSTATE: of a connection for which no password was asked. */
        if (error.sqlstate == kForeignCode && statement.kind == Kind::subscription)
            return "The other server must ask for the password: in its pg_hba.conf, give the line "
                   "for connections from this server the method scram-sha-256. Or connect as a "
                   "superuser.";
        if (error.sqlstate == kForeignCode)
            return remedy_of_foreign_code(sole_owner_);
        for (const std::string& schema : schemas_)
            if (message_of(error) == "permission denied for schema " + schema)
                return "GRANT CREATE ON SCHEMA " + target_.identifier(schema) +
                       " TO ...; on the source, to the owner of this object; or move the shard as "
                       "a superuser.";
        if (error.sqlstate == kInsufficientPrivilege)
            return "Grant the right there, to this role or to the owner of the object; or move the "
                   "shard as a superuser.";
        if (statement.kind == Kind::subscription)
            return statement.hint;
        return "Create the missing object on the target, or change the shard.";
    }

    Connection& target_;
    const std::vector<std::string> schemas_;
    const std::string sole_owner_;
    const std::string made_; /* the schemas, as an array of names as SQL writes them */
    const AgreedRights agreed_;
    Obstacles found_;
    std::set<std::string> errors_;
};

/* It connects to the publisher, which shows whether that can be reached, and makes no slot there.
 * The publication need not be there: that is a warning. slot_name = NONE is allowed only with
 * enabled = false. */
Statement subscription_of(Connection& subscriber, const std::string& name, const std::string& dsn)
{
    return {Kind::subscription, "SUBSCRIPTION " + name,
            subscription_sql(subscriber, name, name, dsn, "slot_name = NONE, enabled = false") +
                ";",
            how_to_connect(dsn)};
}

Statement claim_of(Connection& target, const Shards& shards)
{
    return {Kind::shard, short_title_of(shards), claim_sql(target, shards) + ";"};
}

} // namespace

Obstacles try_subscription(Connection& subscriber, const std::string& name, const std::string& dsn)
{
    if (Obstacles found = find_missing_crl(subscriber, dsn); !found.empty())
        return found;
    return Trial(subscriber, {name}, "").find_obstacles({subscription_of(subscriber, name, dsn)});
}

Obstacles try_definition(Connection& source, Connection& target, const Shards& shards,
                         const Archive* archive, const std::string& move,
                         const std::string& source_dsn, bool replaces_copy)
{
    if (Obstacles found = find_missing_crl(target, source_dsn); !found.empty())
        return found;
    std::vector<Statement> statements;
    std::string copies;
    for (const Shard& shard : shards)
        copies += shard.quoted + ", ";
    if (replaces_copy)
        statements.push_back(
            {Kind::shard, "closed copy", "DROP SCHEMA " + copies + move + " CASCADE;"});
    std::vector<Statement> whole = statements;
    whole.push_back(claim_of(target, shards));
    for (const Shard& shard : shards)
        statements.push_back(claim_of(target, {shard}));
    for (std::vector<Statement>* const some : {&whole, &statements})
        some->push_back(subscription_of(target, move, source_dsn));
    if (archive == nullptr)
        return Trial(target, schemas_in(shards), "").find_obstacles(statements);
    Trial trial(target, schemas_in(shards), sole_owner(source, shards), schemas_of(shards),
                agreed_rights(source, schemas_of(shards)));
    std::vector<Archive::Item> items = archive->items(Archive::Section::pre_data);
    bool is_all = true;
    for (const Archive::Item& item : archive->items(Archive::Section::post_data))
        if (item.title.rfind("MATERIALIZED VIEW DATA", 0) != 0)
            items.push_back(item);
        else
            is_all = false; /* it can take long */
    /* The definition is tried as a whole, because most definitions can be made. Only if it cannot,
     * pg_restore is run for each item, to name those that fail. If none does, a lock was in the
     * way, or an item fails only after others: the second try tells. */
    whole.push_back({Kind::object, "definition", is_all ? archive->text() : archive->sql(items)});
    if (trial.find_first(whole).empty())
        return {};
    for (const Archive::Item& item : items)
        statements.push_back({Kind::object, item.title, archive->sql({item})});
    const Obstacles found = trial.find_obstacles(statements);
    return found.empty() ? trial.find_first(whole) : found;
}
