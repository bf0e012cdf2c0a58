/* One run of a program of models: its options, its results, and the guards that are taken out. */
#pragma once

#include "search.h"
#include "trace.h"

#include <chrono>
#include <iomanip>
#include <string_view>

namespace model
{

struct Run {
    bool is_deep = false;
    bool has_traces = false;
    int passed = 0;
    int failed = 0;
    std::size_t states = 0; /* of all worlds */
    std::chrono::steady_clock::time_point start = std::chrono::steady_clock::now();

    /* Each call is one of the results that are counted in the last line. */
    void require(bool holds, const char* text)
    {
        ++(holds ? passed : failed);
        if (!holds)
            std::cout << "     WRONG: " << text << std::endl;
    }

    /* False if the option is unknown. */
    bool take(std::string_view option)
    {
        is_deep = is_deep || option == "--deep";
        has_traces = has_traces || option == "--traces";
        return option == "--deep" || option == "--traces";
    }

    void count(std::size_t of_world) { states += of_world; }

    /* The exit code. script/test counts by the last line. */
    int end() const
    {
        const auto seconds =
            std::chrono::duration<double>(std::chrono::steady_clock::now() - start);
        std::cout << '\n'
                  << (failed == 0
                          ? "The model holds, and every guard is needed or covered by another"
                          : "FAILED")
                  << "\n"
                  << states << " states\n"
                  << passed << " passed, " << failed << " failed, in " << std::fixed
                  << std::setprecision(1) << seconds.count() << " s\n";
        return failed == 0 ? 0 : 1;
    }
};

/* A guard, or some, taken out. Where two guards cover each other, nothing is found without one of
 * them, and something is found without both. */
template <typename Guards, typename Finding>
struct Case {
    const char* text;
    std::vector<bool Guards::*> removed;
    std::vector<const char*> worlds;
    Finding finding; /* expected in each of the worlds; none: nothing */
    const char* why_nothing;
};

inline void print_world(std::string_view name, std::size_t states, std::size_t depth,
                        std::string_view result, std::string_view text)
{
    std::cout << "  " << std::left << std::setw(12) << name << std::right << std::setw(10) << states
              << " states, depth " << depth << ": " << result << " (" << text << ")" << std::endl;
}

template <typename Guards, typename Finding>
bool is_of(const Case<Guards, Finding>& removed, std::string_view world)
{
    return std::any_of(removed.worlds.begin(), removed.worlds.end(),
                       [&](std::string_view name) { return name == world; });
}

template <typename Guards, typename Finding>
Guards without(const Case<Guards, Finding>& removed)
{
    Guards guards;
    for (bool Guards::*guard : removed.removed)
        guards.*guard = false;
    return guards;
}

/* One of the worlds of the case. */
template <typename Model, typename Guards, typename Finding>
void check_case(Run& run, const Case<Guards, Finding>& removed, const Model& model,
                std::string_view world)
{
    const bool is_covered = removed.finding == Model::Finding::none;
    const auto outcome = search(model, [&](Finding finding) {
        return is_covered ? is_broken_promise(finding) : finding == removed.finding;
    });
    const bool is_found = outcome.finding != Model::Finding::none;
    std::cout << "  " << removed.text << " (" << world << "): ";
    if (is_found)
        std::cout << "found without it, in " << outcome.way.size() << " steps" << std::endl;
    else
        std::cout << "nothing found: " << removed.why_nothing << std::endl;
    if (is_found && (run.has_traces || is_covered))
        print_way(model, outcome.way);
    run.require(is_found != is_covered, is_covered ? "not covered by another guard"
                                                   : "the guard is out, and nothing found");
}

} // namespace model
