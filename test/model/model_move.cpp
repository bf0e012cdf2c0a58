/*
 * A model of moves. It searches every interleaving of a command and its faults with two clients,
 * the workers of two subscriptions and flushes of two servers. After each step it looks for an
 * acknowledged row that is lost or doubled, an ID that is drawn twice, and a shard that is open on
 * both servers. From each state without a command it gives the commands that list names, and looks
 * whether they lead to a shard at rest with nothing left of the move. It fails if one of these can
 * happen, or if none can although a guard is taken out (cases.h).
 *
 *   model_move            seconds
 *   model_move --deep     minutes and two gigabytes: more writes, commands and faults, with every
 *                         guard in place (the bounds are in world.h)
 *   model_move --traces   prints each finding as a shortest sequence of steps; without this option,
 *                         only the findings that are not expected
 *
 * Real: the phase of two records, and the act of a verb in it (cli/fleet/phase.cpp).
 *
 * Written again: the order of the steps (program.h, following.h, after cli/move and cli/cutover)
 * and the effect of each statement (statements.h, after cli/sql/fence.sql).
 *
 * Simplified without loss:
 *  - A set is one table with one sequence. Rows have no contents: each is there or not.
 *  - Statements of one transaction are one step, because nobody sees a part of it.
 *  - setval() is not undone by a rollback, so closing a sequence takes three steps.
 *  - A statement that is late was executed or was not, when its session ends. One without an effect
 *    on a server is not looked at then.
 *  - A server has the state in memory and the one that a crash leaves. Flushes come at any time.
 *  - A row that a client has not committed is in its transaction alone. A transaction may stay
 * open, which allows as much as a rollback.
 *  - A client that is connected directly may write on any server, which allows more than one behind
 *    PgBouncer. The alias is looked at when the shard is at rest.
 *  - The copy of the rows is one step: a killed one is dropped as a whole.
 *  - The cutover is tried twice, and not three times.
 *
 * Not covered: a change of the definition; TRUNCATE; a table whose fence is disabled when it is
 * closed; two commands at a time (each takes the locks of both servers first); a slot whose session
 * begins to make it after the command was killed and another one has looked for it; a server that
 * is lost, or replaced by a standby that lacks WAL; commits of clients that are asynchronous.
 */
#include "cases.h"

using namespace model;
using namespace model::moves;

namespace
{

void check_worlds(Run& run, const std::vector<World>& worlds)
{
    std::cout << "Each world of moves, with every guard in place\n";
    for (const World& world : worlds) {
        const Moves moves = {world, run.is_deep ? world.deep : world.bounds, Guards{}};
        const auto outcome = search(moves, is_broken_promise);
        run.count(outcome.states);
        print_world(world.name, outcome.states, outcome.depth,
                    outcome.finding == moves::Finding::none ? "no promise broken"
                                                            : text_of(outcome.finding),
                    world.text);
        if (outcome.finding != moves::Finding::none)
            print_way(moves, outcome.way);
        run.require(outcome.finding == moves::Finding::none, "a promise is broken");
    }
}

/* Where a promise about rows or IDs is expected to break, the search does not look for a rest: the
 * commands that lead there may break it, too, and the way would be longer. */
void check_guards(Run& run, const std::vector<World>& worlds)
{
    std::cout << "\nEach guard of moves, taken out\n";
    for (const MoveCase& removed : all_cases())
        for (const World& world : worlds)
            if (is_of(removed, world.name))
                check_case(
                    run, removed,
                    Moves{world, world.bounds, without(removed), !is_at_once(removed.finding)},
                    world.name);
}

} // namespace

int main(int argc, char** argv)
{
    Run run;
    for (int i = 1; i < argc; ++i)
        if (!run.take(argv[i])) {
            std::cerr << "usage: model_move [--deep] [--traces]\n";
            return 2;
        }
    const std::vector<World> worlds = all_worlds();
    check_worlds(run, worlds);
    check_guards(run, worlds);
    return run.end();
}
