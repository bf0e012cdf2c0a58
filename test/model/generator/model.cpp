/*
 * A model of the generator. It searches every interleaving of three sessions that draw and commit
 * with flushes, page writes, a checkpoint, a crash and commands on the sequence, under a clock that
 * may read anything. It fails if a promise about IDs can be broken, or if no promise can be broken
 * although a guard is taken out (cases.h).
 *
 *   model             within half a minute and a gigabyte
 *   model --deep      minutes and four gigabytes: more draws, crashes and checkpoints, with every
 *                     guard in place (the bounds are in world.h)
 *   model --traces    prints each finding as a shortest sequence of steps; without this option,
 *                     only the findings that are not expected
 *
 * Real: decide_draw(), is_record_due(), decide_advance() and the lease are the extension's own
 * functions, with their real constants. Positions are of the first seconds of Unix time. A few
 * clock readings and block sizes are chosen so that a millisecond is carried over, a lease is used
 * up, and the clock is ahead, behind and level.
 *
 * Written again: the order of the steps in page.cpp, durability.cpp and generator.cpp
 * (draw_steps.h), and the server's part after bufmgr.c, xlog.c, xact.c and sequence.c of
 * PostgreSQL 15.
 *
 * Simplified without loss:
 *  - The clock has no state. Each reading may be any of the world's values, which allows more than
 *    a real clock. In a world where the clock runs on, no reading is earlier than one before it, a
 *    wait takes at least a millisecond, and the clock is later after a crash.
 *  - The WAL holds records of this sequence only. Other records (an empty one, a commit's, a
 *    checkpoint's) are noted, not inserted: flushing a session's commit flushes all that was
 *    inserted before it. So LSNs are as close as they can be, and a crash lets them be used again.
 *  - Between two accesses to shared state a session does one step. So it does under the page's lock
 *    where no other session can see the difference.
 *  - An abort and an asynchronous commit promise the same as a transaction that stays open, and any
 *    transaction may stay open.
 *  - Sessions are alike, so states that differ by their order are one; and so are states that
 * differ by values that no later step reads (forget.h). The search ends with the last write of a
 * page, because IDs are judged there (properties.h).
 *
 * Not covered: more draws, crashes and checkpoints than the bounds allow; a disk that loses a page
 * write that the server has not synced; waiting for a synchronous standby (a promoted standby has
 * the flushed WAL here); the PL/pgSQL function's IDs; a position set back while it is ahead of the
 * clock, or by a transaction that rolls back, about which nothing is promised.
 */
#include "cases.h"
#include "rule_box.h"

using namespace model;

namespace
{

const Bounds& bounds_of(const Run& run, const World& world)
{
    return run.is_deep ? world.deep : world.bounds;
}

void check_the_rule(Run& run)
{
    const RuleCheck check = check_rule();
    std::cout << "The rule: " << check.inputs << " inputs, " << check.issued << " issued, "
              << check.wrong << " wrong\n";
    run.require(check.inputs > 0 && check.wrong == 0, "next() breaks its own rule");
}

void check_the_model(Run& run, const std::vector<World>& worlds)
{
    std::cout << "\nEach world, with every guard in place\n";
    const Guards guards;
    std::size_t not_promised = 0;
    for (const World& world : worlds) {
        const Generator generator = {world, bounds_of(run, world), guards};
        const auto outcome = search(generator, is_broken_promise);
        run.count(outcome.states);
        const bool is_broken = is_broken_promise(outcome.finding);
        print_world(world.name, outcome.states, outcome.depth,
                    is_broken ? text_of(outcome.finding) : "no promise broken", world.text);
        if (is_broken)
            print_way(generator, outcome.way);
        run.require(!is_broken, "a promise is broken");
        if (run.has_traces && not_promised == 0 && outcome.others > 0) {
            std::cout << "     What is not promised, and happens:\n";
            print_way(generator, outcome.way_to_other);
        }
        not_promised += outcome.others;
    }
    std::cout << "  " << not_promised
              << " times, an ID that was only seen is made again, by a clock "
              << "that is no later: not promised\n";
    run.require(not_promised > 0, "what is not promised does not happen: the model is too coarse");
}

} // namespace

int main(int argc, char** argv)
{
    Run run;
    for (int i = 1; i < argc; ++i)
        if (!run.take(argv[i])) {
            std::cerr << "usage: model [--deep] [--traces]\n";
            return 2;
        }
    const std::vector<World> worlds = all_worlds();
    check_the_rule(run);
    check_the_model(run, worlds);
    std::cout << "\nEach guard, taken out\n";
    for (const auto& removed : all_cases())
        for (const World& world : worlds)
            if (is_of(removed, world.name))
                check_case(run, removed, Generator{world, world.bounds, without(removed)},
                           world.name);
    return run.end();
}
