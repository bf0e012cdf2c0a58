/*
 * Models of moves and of splits. Each searches every interleaving of a command and its faults with
 * two clients, replication and flushes of two servers. After each step it looks for an acknowledged
 * row that is lost or doubled, an ID that is drawn twice, and a shard that is open on both servers.
 * From each state without a command it gives the next commands, and looks whether they lead to a
 * shard at rest with nothing left. It fails if one of these can happen, or if none can although a
 * guard is taken out (cases.h).
 *
 *   model_move            seconds
 *   model_move --deep     two minutes and 600 MB: more writes, commands and faults, with every
 *                         guard in place (the bounds are in world.h)
 *   model_move --traces   prints each finding as a shortest sequence of steps; without this option,
 *                         only the findings that are not expected
 *   model_move --steps    prints the steps of each verb, which test/gaps/model.pl compares with the
 *                         statements of the command
 *
 * Real: the phase of two records of a move, and the act of a verb in it (cli/fleet/phase.cpp); the
 * order of the steps of --abort and --complete, and of those that lower a fence (cli/program).
 *
 * Written again: the order of the other steps of a move (in cli/program, too, after
 * cli/move/forward.cpp and cutover.cpp) and of a split (split/program.h, after cli/split), and the
 * effect of each statement (statements.h, after cli/sql).
 *
 * Simplified without loss:
 *  - A set is one table with one sequence; of a split, one shard leaves and one stays. Rows have no
 *    contents: each is there or not.
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
 *  - A standby replays all that is flushed. It was flushed commit by commit, if nothing else came
 * in between.
 *
 * Not covered: a change of the definition; TRUNCATE; a table whose fence is disabled when it is
 * closed; two commands at a time (each takes the locks of both servers first); a slot whose session
 * begins to make it after the command was killed and another one has looked for it; a server that
 * is lost, or replaced by a standby that lacks WAL; asynchronous commits of clients.
 */
#include "move/cases.h"
#include "split/cases.h"
#include "listed.h"

using namespace model;

namespace
{

/* Without a finding in any world. Where a promise about rows or IDs is expected to break, the
 * search does not look for a rest: the commands that lead there may break it, too, and the way
 * would be longer. */
template <typename Model, typename World, typename Cases>
void check(Run& run, const char* name, const std::vector<World>& worlds, const Cases& cases)
{
    std::cout << "Each world of " << name << ", with every guard in place\n";
    for (const World& world : worlds) {
        const Model whole = {world, run.is_deep ? world.deep : world.bounds, {}};
        const auto outcome = search(whole, [](auto finding) { return is_broken_promise(finding); });
        const bool is_broken = is_broken_promise(outcome.finding);
        run.count(outcome.states);
        print_world(world.name, outcome.states, outcome.depth,
                    is_broken ? text_of(outcome.finding) : "no promise broken", world.text);
        if (is_broken)
            print_way(whole, outcome.way);
        run.require(!is_broken, "a promise is broken");
    }
    std::cout << "\nEach guard of " << name << ", taken out\n";
    for (const auto& removed : cases)
        for (const World& world : worlds)
            if (is_of(removed, world.name))
                check_case(
                    run, removed,
                    Model{world, world.bounds, without(removed), !is_at_once(removed.finding)},
                    world.name);
    std::cout << '\n';
}

} // namespace

int main(int argc, char** argv)
{
    Run run;
    if (argc == 2 && argv[1] == std::string_view("--steps")) {
        print_all_steps();
        return 0;
    }
    for (int i = 1; i < argc; ++i)
        if (!run.take(argv[i])) {
            std::cerr << "usage: model_move [--deep] [--traces], or model_move --steps\n";
            return 2;
        }
    check<moves::Moves>(run, "moves", moves::all_worlds(), moves::all_cases());
    check<splits::Splits>(run, "splits", splits::all_worlds(), splits::all_cases());
    return run.end();
}
