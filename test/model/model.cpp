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
#include "trace.h"

#include <chrono>
#include <iomanip>
#include <string_view>

using namespace model;

namespace
{

struct Run {
    bool is_deep = false;
    bool has_traces = false;
    std::vector<World> worlds = all_worlds();
    int passed = 0;
    int failed = 0;

    const Bounds& bounds_of(const World& world) const
    {
        return is_deep ? world.deep : world.bounds;
    }

    /* Each call is one of the results that are counted in the last line. */
    void require(bool holds, const char* text)
    {
        ++(holds ? passed : failed);
        if (!holds)
            std::cout << "     WRONG: " << text << std::endl;
    }
};

void check_the_rule(Run& run)
{
    const RuleCheck check = check_rule();
    std::cout << "The rule: " << check.inputs << " inputs, " << check.issued << " issued, "
              << check.wrong << " wrong\n";
    run.require(check.inputs > 0 && check.wrong == 0, "next() breaks its own rule");
}

void check_the_model(Run& run)
{
    std::cout << "\nEach world, with every guard in place\n";
    std::size_t not_promised = 0;
    for (const World& world : run.worlds) {
        const Bounds& bounds = run.bounds_of(world);
        const Outcome outcome = search(world, bounds, Guards{}, is_broken_promise);
        const bool is_broken = is_broken_promise(outcome.finding);
        std::cout << "  " << std::left << std::setw(12) << world.name << std::right << std::setw(10)
                  << outcome.states << " states, depth " << outcome.depth << ": "
                  << (is_broken ? text_of(outcome.finding) : "no promise broken") << " ("
                  << world.text << ")" << std::endl;
        if (is_broken)
            print_way(outcome.way, world, bounds, Guards{});
        run.require(!is_broken, "a promise is broken");
        if (run.has_traces && not_promised == 0 && outcome.not_promised > 0) {
            std::cout << "     What is not promised, and happens:\n";
            print_way(outcome.way_to_not_promised, world, bounds, Guards{});
        }
        not_promised += outcome.not_promised;
    }
    std::cout << "  " << not_promised
              << " times, an ID that was only seen is made again, by a clock "
              << "that is no later: not promised\n";
    run.require(not_promised > 0, "what is not promised does not happen: the model is too coarse");
}

bool is_in(const World& world, const Case& removed)
{
    return std::any_of(removed.worlds.begin(), removed.worlds.end(),
                       [&](std::string_view name) { return name == world.name; });
}

void check_case(Run& run, const Case& removed)
{
    Guards guards;
    for (bool Guards::*guard : removed.removed)
        guards.*guard = false;
    const bool is_covered = removed.finding == Finding::none;
    const auto is_end = [&](Finding finding) {
        return is_covered ? is_broken_promise(finding) : finding == removed.finding;
    };

    for (const World& world : run.worlds) {
        if (!is_in(world, removed))
            continue;
        const Outcome outcome = search(world, world.bounds, guards, is_end);
        const bool is_found = outcome.finding != Finding::none;
        std::cout << "  " << removed.text << " (" << world.name << "): ";
        if (is_found)
            std::cout << "found without it, in " << outcome.way.size() << " steps" << std::endl;
        else
            std::cout << "nothing found" << std::endl;
        if (is_found && (run.has_traces || is_covered))
            print_way(outcome.way, world, world.bounds, guards);
        run.require(is_found != is_covered, is_covered ? "not covered by another guard"
                                                       : "the guard is out, and nothing found");
    }
    if (is_covered)
        std::cout << "     " << removed.why_nothing << '\n';
}

/* False if an option is unknown. */
bool parse_options(Run& run, int argc, char** argv)
{
    for (int i = 1; i < argc; ++i) {
        const std::string_view option = argv[i];
        if (option == "--deep")
            run.is_deep = true;
        else if (option == "--traces")
            run.has_traces = true;
        else
            return false;
    }
    return true;
}

} // namespace

int main(int argc, char** argv)
{
    Run run;
    if (!parse_options(run, argc, argv)) {
        std::cerr << "usage: model [--deep] [--traces]\n";
        return 2;
    }
    const auto start = std::chrono::steady_clock::now();
    check_the_rule(run);
    check_the_model(run);
    std::cout << "\nEach guard, taken out\n";
    for (const Case& removed : all_cases())
        check_case(run, removed);

    const auto seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - start);
    std::cout << '\n'
              << (run.failed == 0
                      ? "The model holds, and every guard is needed or covered by another"
                      : "FAILED")
              << "\n"
              << run.passed << " passed, " << run.failed << " failed, in " << std::fixed
              << std::setprecision(1) << seconds.count() << " s\n";
    return run.failed == 0 ? 0 : 1;
}
