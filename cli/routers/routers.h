/* Leads clients to the target: every PgBouncer of a move, and the command for another router. */

#pragma once

#include <functional>
#include <list>
#include <map>
#include <mutex>
#include <string>
#include <vector>

#include "postgres/obstacles.h"
#include "routers/pgbouncer.h"
#include "routers/pooler_host.h"
#include "routers/routing.h"

class Routers
{
public:
    /* opened: "the shard is", as an error begins. */
    Routers(Routing routing, std::string opened);

    const Routing& routing() const { return routing_; }

    /* Call it before the move, and again before the cutover, because hours may have passed. */
    Obstacles find_obstacles(Connection& source);
    /* How many connections the aliases have to their servers now. */
    int connections();
    /* Two moves of a list may have the same file: from here to the end of lead_to(), others wait.
     * If lead_to() fails, they wait until this object is gone. */
    void wait_for_turn();
    /* Prepares the files before the cutover. An error if there is an obstacle by now. */
    void make_ready(Connection& source, const Connection& target);
    /* Warns beforehand of each PgBouncer that cannot keep the clients of an alias connected when it
     * leads them from the one server to the other; once in a command. */
    void tell_of_disconnected(const Connection& source, const Connection& target);

    /* Late if one of them cannot do it in time. */
    void pause(Clock::time_point deadline);
    /* A failure is a warning, so that the other aliases are resumed too; false then. Aliases that
     * are not paused are no failure, so it may run twice. */
    bool resume();

    /* The target is open. One that fails does not stop the others; its clients stay held. The error
     * names each that has failed. The command runs once for each of variables: KEY=value, more of
     * its environment. */
    void lead_to(const Connection& source, const Connection& target,
                 const std::vector<std::vector<std::string>>& variables);
    /* Removes the prepared files after an abort. The files of PgBouncer themselves were not changed
     * before the target was open. */
    void discard_prepared();

    /* A line for each paused alias, with the remedy; else empty. */
    std::string paused(const std::string& remedy);

private:
    struct Problem {
        const PgBouncer* bouncer;
        std::string text;
    };

    Edit edit_of(const PgBouncer& bouncer, const Address& place);
    std::vector<Problem> each(const std::function<void(PgBouncer&)>& work);
    std::string run_command(const Connection& target,
                            std::vector<std::vector<std::string>> variables);
    void tell_pause();

    const Routing routing_;
    const std::string opened_;
    /* A list, because their addresses are the keys of edited_. */
    std::list<PgBouncer> bouncers_;
    /* A text and its edited form: a file of thousands of lines is edited before the cutover. */
    struct Edited {
        std::string before;
        std::string place;
        std::string after;
        bool has_query; /* a line of an alias has connect_query */
    };
    std::map<const PgBouncer*, Edited> edited_;
    /* When pause() began; zero if this object holds no clients. */
    Clock::time_point pause_;
    std::unique_lock<std::mutex> turn_;
};
