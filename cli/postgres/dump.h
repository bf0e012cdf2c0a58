/* The definitions of schemas and tables as pg_dump and pg_restore write them, to be run on a
 * server.
 *
 * The body of a function can contain everything that pg_dump writes between its entries. So the
 * text is run as a whole, or pg_restore writes the part that is wanted: nothing is cut out of it.
 */

#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "postgres/connection.h"
#include "postgres/obstacles.h"

/* name: pg_dump or pg_restore. It is missing, or older than the server. The functions below throw
 * this as a Failure. */
Obstacles find_old_program(const Connection& connection, const std::string& name);

/* Tables with their indexes, constraints, triggers, and the sequences that they own. Each name is
 * two quoted identifiers, which pg_dump takes as they stand and not as a pattern. */
std::string dump_tables(const Connection& connection, const std::vector<std::string>& tables);

/* A file in memory, which other programs of this user open by its path. A command that is killed
 * leaves nothing: a definition can hold constants that others may not read. */
class NamelessFile
{
public:
    NamelessFile();
    ~NamelessFile();
    NamelessFile(const NamelessFile&) = delete;
    NamelessFile& operator=(const NamelessFile&) = delete;

    std::string path() const;

private:
    const int file_;
};

/* The objects of schemas without rows; materialized views that are filled are refreshed. The server
 * must not be newer than pg_dump. A schema that does not exist is an error of pg_dump. pg_dump
 * takes ACCESS SHARE on every table, so it waits for an ALTER TABLE, up to lock_timeout. Failure
 * with its message if pg_dump fails.
 *
 * A file of the custom format, made once: all parts of it are of the same snapshot. */
class Archive
{
public:
    enum class Section { pre_data, post_data };

    struct Item {
        int id;                /* of the archive */
        std::uint32_t catalog; /* OID of the system catalogue; 0: the item is no object */
        std::uint32_t object;
        std::string title; /* FUNCTION next_id(); of several schemas FUNCTION insta5 next_id() */
        enum class Kind { schema, privileges_of_schema, other } kind;
        std::string owner{}; /* of its schema */
    };

    struct Schema {
        std::string name;
        std::string quoted; /* where that is needed */
        std::string owner;  /* without quotes */
    };

    Archive(Connection& connection, const std::vector<std::string>& schemas,
            const std::string& lock_timeout = "");

    /* The items in the order in which they are to be made. */
    const std::vector<Item>& items(Section section) const;
    /* The schemas in the order in which they are given; and those items of an owner's schemas that
     * his session makes, with make_definition(). */
    const std::vector<Schema>& schemas() const { return schemas_; }
    std::vector<Item> items(Section section, const std::string& owner) const;
    /* The items in their order, but first the schemas with their privileges, and last all other
     * privileges. "" for none. New objects belong to the role that runs them, the owner of the
     * schema. At the end an object that has another owner is given to that role, if it works with
     * the rights of its owner, as a table, a view, a SECURITY DEFINER function does, or if the
     * owner of the schema may do so. */
    std::string sql(const std::vector<Item>& items) const;
    /* All of it, with the owner of each object: to be compared. */
    const std::string& text() const { return text_; }
    /* The same for make_definition(), if the schemas have one owner. */
    std::string definition() const;

private:
    std::vector<Item> list(std::vector<std::string> options) const;
    std::string owner_of(const Item& item) const;
    std::vector<Item> read_items(const std::string& section) const;
    std::string body(const std::vector<Item>& items, const std::string& option) const;
    std::string whole(const std::vector<Item>& items, const std::string& option) const;

    const std::vector<Schema> schemas_;
    const std::string pg_restore_; /* its path */
    const NamelessFile archive_;
    std::map<int, std::string> owners_; /* of schemas, by item; empty if there is one */
    /* ALTER ... OWNER TO of objects, by catalog and OID, see sql(). */
    std::map<std::pair<std::uint32_t, std::uint32_t>, std::string> givings_;
    /* Each question to pg_restore takes as long as ten statements. */
    std::vector<Item> pre_data_;
    std::vector<Item> post_data_;
    std::string text_;
};
