/* A shard a second time, without rows, in a schema with a name of its own.
 *
 * pg_dump writes a definition with the schema's name in it. To make it under another name, its text
 * is run as it is: in one transaction the shard is renamed away, the text is run, and the two are
 * renamed. So no text is edited, which could break a quoted name. References to the shard's objects
 * become references to the copy's own; in the body of a function, which is text, names stay.
 *
 * All of it is done in a session of the owner of the shard, who can change the copy meanwhile: the
 * statements can do no more than that role. */

#pragma once

#include <string>

#include "base/shards.h"
#include "definition/definition.h"
#include "postgres/connection.h"

class Copy
{
public:
    /* Waits until no other command makes a copy in the database. Drops the copy of a command that
     * was killed. definition: of the shard. Throws ServerError if it cannot be made, which is then
     * rolled back. */
    Copy(const std::string& dsn, const Shard& shard, const Definition& definition);
    ~Copy();
    Copy(const Copy&) = delete;
    Copy& operator=(const Copy&) = delete;

    const Shard& shard() const { return shard_; }

    /* Gives it another number, and the name with this at its end. The name differs for each
     * connection of clone, so that several can make and rename the schema of a dump at the same
     * time. */
    void renumber(int number);
    void rename(int suffix);
    /* Gives its functions names that no other schema has. PostgreSQL looks a function up among all
     * of its name: where thousands of schemas have a next_id(), each DEFAULT, COMMENT and ALTER of
     * a clone would read thousands of rows. */
    void rename_functions();
    /* Statements that give them the template's names. */
    std::string names_of_functions();
    /* Statements that make it a shard of its own in another transaction: see renumbering_of(). */
    std::string renumbering();

private:
    void run(const std::string& statements);

    Connection connection_;
    const std::string owner_; /* of the schema */
    Shard shard_;
    Shard named_;                  /* in the settings of its functions */
    std::string functions_ = "{}"; /* OIDs of those that rename_functions() has renamed */
    std::string names_ = "{}";     /* the template's */
};

/* Schemas of that name are copies. verify reports them, and the next clone drops them. */
inline const std::string kCopyPattern = "^snowflake_copy_[0-9]+_[0-9]+$";

/* Statements that give the copy another number and another name, with marks in place of both. They
 * are made from the catalogue, object by object: DEFAULTs, domains, functions with an SQL body,
 * CHECK constraints with the copy's number; settings of functions such as SET search_path = insta5
 * with named in them, the schema that the copy was made from. A number in any other object stays,
 * for example in a view, an index, a policy or a generated column: compare_copy() finds that, and
 * clone refuses the template. The statements run in a transaction of the caller. Failure if a name
 * or an expression has a mark of its own. */
std::string renumbering_of(Connection& connection, const Shard& copy, const Shard& named);
