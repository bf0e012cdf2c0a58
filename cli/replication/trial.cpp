#include "replication/trial.h"

#include <algorithm>
#include <set>

#include "base/timeouts.h"
#include "fleet/catalog.h"
#include "postgres/security.h"
#include "postgres/session.h"
#include "postgres/settings.h"
#include "postgres/sql_text.h"
#include "replication/owners.h"
#include "replication/subscription.h"

namespace
{

/* The first line, without ERROR. */
std::string message_of(const ServerError& error)
{
    const std::string text = error.what();
    const std::size_t begin = text.find(":  ");
    const std::size_t from = begin == std::string::npos ? 0 : begin + 3;
    return text.substr(from, text.find('\n', from) - from);
}

/* That of the server; empty without one. */
std::string hint_in(const ServerError& error)
{
    const std::string text = error.what();
    const std::string mark = "\nHINT:  ";
    const std::size_t begin = text.find(mark);
    return begin == std::string::npos ? "" : text.substr(begin + mark.size());
}

/* A statement of the command. */
struct Statement {
    std::string title;
    std::string sql;
    std::string hint;
    bool connects = false;
};

std::string hint_of(const Statement& statement, const ServerError& error)
{
    if (error.sqlstate == kLockTimeout)
        return "A table that it refers to is busy there. Try again.";
    if (!statement.connects)
        return statement.hint;
    /* The connection was not asked for a password. */
    if (error.sqlstate == kPasswordRequired)
        return "The other server must ask for the password: in its pg_hba.conf, give the line for "
               "connections from this server the method scram-sha-256. Or connect as a superuser.";
    return error.sqlstate == kInsufficientPrivilege
               ? "Grant the right to this role there, or connect as a superuser."
               : statement.hint;
}

Obstacles try_statements(Connection& target, const std::vector<Statement>& statements)
{
    Obstacles found;
    target.run("BEGIN; SET LOCAL lock_timeout = " + milliseconds_of(timeouts::kTrialLock));
    hide_statements(target);
    for (const Statement& statement : statements) {
        target.run("SAVEPOINT statement");
        try {
            target.run(statement.sql);
        } catch (const ServerError& error) {
            target.run("ROLLBACK TO statement");
            found.add(target.server(), statement.title + ": " + message_of(error),
                      hint_of(statement, error));
        }
    }
    target.rollback();
    return found;
}

/* The definition, in sessions of the owners of its schemas, whose transactions are rolled back. */
class DefinitionTrial
{
public:
    DefinitionTrial(Connection& target, const Archive& archive, bool replaces_copy)
        : target_(target), archive_(archive), replaces_copy_(replaces_copy)
    {
        for (const Archive::Schema& schema : archive.schemas())
            owners_.insert(schema.owner);
    }

    Obstacles find_obstacles()
    {
        for (const std::string& owner : owners_)
            try_owner(owner);
        return found_;
    }

private:
    /* The definition is tried as a whole, because most definitions can be made. Only if it cannot,
     * pg_restore is run for each item, to name those that fail. If none does, a lock was in the
     * way, or an item fails only after others: the third try tells. */
    void try_owner(const std::string& owner)
    {
        std::vector<Archive::Item> items = archive_.items(Archive::Section::pre_data, owner);
        for (const Archive::Item& item : archive_.items(Archive::Section::post_data, owner))
            if (item.title.rfind("MATERIALIZED VIEW DATA", 0) != 0) /* it can take long */
                items.push_back(item);
        const std::string whole = archive_.sql(items);
        if (try_whole(owner, whole))
            return;
        const std::size_t count = found_.size();
        if (begin(owner)) {
            for (const OwnersItems& part : parts_of(items))
                for (const Archive::Item& item : part.items)
                    try_item(owner, item);
            target_.rollback();
        }
        if (found_.size() == count && errors_.empty())
            try_whole(owner, whole, true);
    }

    bool try_whole(const std::string& owner, const std::string& sql, bool tells = false)
    {
        if (!begin(owner, tells))
            return false;
        try {
            run_in_session(target_, sql);
            target_.rollback();
            return true;
        } catch (const ServerError& error) {
            target_.rollback();
            if (tells)
                note(owner, "definition", error);
            return false;
        }
    }

    bool begin(const std::string& owner, bool tells = true)
    {
        try {
            begin_of_owner(target_, owner, timeouts::kTrialLock);
            int renamed = 0;
            for (const Archive::Schema& schema : archive_.schemas())
                if (schema.owner == owner) {
                    if (replaces_copy_)
                        rename_schema(target_, schema.name,
                                      "snowflake_trial_" + std::to_string(renamed++));
                    create_schema(target_, schema.name);
                }
            return true;
        } catch (const ServerError& error) {
            target_.rollback();
            if (tells)
                note(owner, "session of role " + owner, error);
            return false;
        }
    }

    /* Without the savepoints the first error would end the transactions, and with them the objects
     * that the next items need. */
    void try_item(const std::string& owner, const Archive::Item& item)
    {
        target_.run("SAVEPOINT item");
        command_session(target_, "SAVEPOINT item");
        try {
            run_in_session(target_, archive_.sql({item}));
        } catch (const ServerError& error) {
            target_.run("ROLLBACK TO item");
            command_session(target_, "ROLLBACK TO item");
            note(owner, item.title, error);
        }
    }

    /* An error that names one of the schemas follows from an earlier one, or is of an object of
     * another owner, which is not there yet; the first error is printed in any case. The same text
     * is printed once: one missing type can make many items fail. */
    void note(const std::string& owner, const std::string& title, const ServerError& error)
    {
        const std::string message = message_of(error);
        const bool is_named =
            std::any_of(archive_.schemas().begin(), archive_.schemas().end(),
                        [&](const Archive::Schema& schema) {
                            return message.find(schema.name + ".") != std::string::npos ||
                                   message.find("\"" + schema.name + "\"") != std::string::npos;
                        });
        const bool is_consequence = is_named && (!errors_.empty() || owners_.size() > 1) &&
                                    error.sqlstate != kInsufficientPrivilege;
        if (!errors_.insert(message).second || is_consequence)
            return;
        found_.add(target_.server(), visible(title) + ": " + message, hint_of(owner, error));
    }

    std::string hint_of(const std::string& owner, const ServerError& error)
    {
        const std::string message = message_of(error);
        if (error.sqlstate == kLockTimeout)
            return "A table that it refers to is busy there. Try again.";
        for (const Archive::Schema& schema : archive_.schemas())
            if (message == "permission denied for schema " + schema.name)
                return "GRANT USAGE, CREATE ON SCHEMA " + schema.quoted +
                       " TO ...; on the source, to the owner of this object.";
        if (std::string hint = hint_in(error); !hint.empty())
            return hint;
        if (error.sqlstate == kInsufficientPrivilege)
            return remedy_of_right(target_, message, owner);
        return "Create the missing object on the target, or change the shard.";
    }

    Connection& target_;
    const Archive& archive_;
    const bool replaces_copy_;
    std::set<std::string> owners_;
    Obstacles found_;
    std::set<std::string> errors_;
};

/* It connects to the publisher, which shows whether that can be reached, and makes no slot there.
 * The publication need not be there: that is a warning. slot_name = NONE is allowed only with
 * enabled = false. */
Statement subscription_of(Connection& subscriber, const std::string& name, const std::string& dsn)
{
    return {"SUBSCRIPTION " + name,
            subscription_sql(subscriber, name, name, dsn, "slot_name = NONE, enabled = false"),
            how_to_connect(dsn), true};
}

Statement claim_of(Connection& target, const Shards& shards)
{
    return {short_title_of(shards), claim_sql(target, shards),
            "Drop that schema there, if it is not used."};
}

} // namespace

Obstacles try_subscription(Connection& subscriber, const std::string& name, const std::string& dsn)
{
    if (Obstacles found = find_missing_crl(subscriber, dsn); !found.empty())
        return found;
    return try_statements(subscriber, {subscription_of(subscriber, name, dsn)});
}

Obstacles try_items(Connection& server, const Archive& archive, bool replaces_copy)
{
    return DefinitionTrial(server, archive, replaces_copy).find_obstacles();
}

Obstacles try_definition(Connection& target, const Shards& shards, const Archive* archive,
                         const std::string& move, const std::string& source_dsn, bool replaces_copy)
{
    if (Obstacles found = find_missing_crl(target, source_dsn); !found.empty())
        return found;
    std::vector<Statement> statements;
    std::string copies;
    for (const Shard& shard : shards)
        copies += shard.quoted + ", ";
    if (replaces_copy)
        statements.push_back({"closed copy", "DROP SCHEMA " + copies + move + " CASCADE",
                              "Drop that schema there, if it is not used."});
    for (const Shard& shard : shards)
        statements.push_back(claim_of(target, {shard}));
    statements.push_back(subscription_of(target, move, source_dsn));
    Obstacles found = try_statements(target, statements);
    if (archive != nullptr)
        found.add(try_items(target, *archive, replaces_copy));
    return found;
}
