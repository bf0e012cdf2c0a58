/*
 * The stress client: many sessions draw IDs from one sequence and record all that they see;
 * afterwards every ID is compared with every other.
 */
#include "checker.h"
#include "client.h"
#include "observer.h"
#include "options.h"
#include "scratch.h"
#include "self_test.h"

#include <exception>
#include <future>
#include <iomanip>
#include <optional>
#include <thread>

using namespace stress;

namespace
{

/* All clients start together; otherwise the first could be done before the last starts. */
std::vector<History> run_clients(const Options& options, const std::vector<Load>& loads)
{
    Progress progress;
    std::vector<std::unique_ptr<Client>> clients;
    for (const Load& load : loads)
        clients.push_back(std::make_unique<Client>(options.conninfo, load, options.seed,
                                                   static_cast<std::uint32_t>(clients.size()),
                                                   progress));

    std::promise<void> start;
    const std::shared_future<void> started = start.get_future().share();
    std::vector<std::exception_ptr> failures(clients.size());
    std::vector<std::thread> threads;
    for (std::size_t i = 0; i < clients.size(); ++i) {
        threads.emplace_back([&, i] {
            try {
                started.wait();
                clients[i]->run();
            } catch (...) {
                failures[i] = std::current_exception();
            }
        });
    }
    start.set_value();
    for (std::thread& thread : threads)
        thread.join();
    for (const std::exception_ptr& failure : failures) {
        if (failure)
            std::rethrow_exception(failure);
    }

    std::vector<History> histories;
    for (const auto& client : clients)
        histories.push_back(client->take_history());
    return histories;
}

/* From the first statement sent to the last result seen. */
double elapsed_ms(const std::vector<History>& histories)
{
    Instant first = std::numeric_limits<Instant>::max();
    Instant last = std::numeric_limits<Instant>::min();
    for (const History& history : histories) {
        first = std::min(first, history.statements.front().sent);
        last = std::max(last, history.statements.back().seen);
    }
    return static_cast<double>(last - first) / 1e6;
}

Findings check_and_report(const std::string& title, const std::vector<History>& histories)
{
    Findings findings = check(histories);
    const double elapsed = elapsed_ms(histories);
    std::cout << std::fixed << std::setprecision(1) << title << ": " << histories.size()
              << " clients, " << findings.ids << " IDs in " << elapsed << " ms, "
              << static_cast<double>(findings.ids) / elapsed << " a ms\n"
              << "  duplicates                 " << findings.duplicates << '\n'
              << "  out of order in a session  " << findings.session_inversions << '\n'
              << "  out of order over sessions " << findings.late_ids << '\n';
    for (const Id id : findings.examples)
        std::cout << "  duplicate " << id << '\n';
    std::cout << std::flush;
    return findings;
}

Load load_of(const Options& options, const std::optional<Scratch>& scratch, Generator generator)
{
    Load load{generator,
              options.mode,
              static_cast<std::size_t>(options.ids),
              static_cast<std::size_t>(options.rows),
              options.shard,
              options.sequence,
              options.original,
              false,
              options.rest_ms,
              std::numeric_limits<std::size_t>::max()};
    if (scratch) {
        load.original = scratch->original();
        load.sequence = generator == Generator::native ? scratch->native_sequence()
                                                       : scratch->legacy_sequence();
    }
    return load;
}

Findings run_one(const Options& options, const std::optional<Scratch>& scratch, Generator generator)
{
    const std::vector<Load> loads(static_cast<std::size_t>(options.clients),
                                  load_of(options, scratch, generator));
    return check_and_report(name_of(generator), run_clients(options, loads));
}

ExitStatus run(const Options& options)
{
    std::optional<Scratch> scratch;
    if (options.setup)
        scratch.emplace(options);
    return run_one(options, scratch, options.generator).clean() ? kClean : kFaultFound;
}

/* On a busy machine a test may wait for minutes, while its clients go on. */
constexpr std::size_t kMemory = 200000000;

/* The caller makes the faults and judges the findings, so a fault found is not a failure here. */
ExitStatus observe(const Options& options)
{
    std::vector<Load> loads;
    for (const ClientKind& kind : options.observed) {
        loads.push_back(load_of(options, std::nullopt, options.generator));
        loads.back().mode = kind.mode;
        loads.back().rows = static_cast<std::size_t>(kind.rows);
        loads.back().asynchronous = kind.asynchronous;
        loads.back().ids = std::numeric_limits<std::size_t>::max();
        loads.back().memory = kMemory / options.observed.size();
    }
    Observer observer(options, std::move(loads));
    observer.answer_until_told_to_stop();
    for (const std::string& trouble : observer.troubles())
        std::cerr << "stress: " << trouble;
    const Findings findings = check(observer.histories());
    for (const Id id : findings.examples)
        std::cerr << "stress: duplicate " << id << '\n';
    std::cout << to_json(findings, observer) << std::endl;
    return kClean;
}

/*
 * "No duplicates" is worth something only if the checker finds duplicates where there are some: in
 * fabricated histories, and in the IDs that the original makes under the same load.
 */
ExitStatus prove(const Options& options)
{
    const std::vector<std::string> misjudged = misjudged_histories();
    for (const std::string& what : misjudged)
        std::cout << "self-test: misjudged: " << what << '\n';
    if (!misjudged.empty())
        return kFaultFound;
    std::cout << "self-test: passed\n";

    constexpr int kLastResortCache = 1024;
    std::optional<Scratch> scratch(std::in_place, options);
    for (int round = 1; round <= options.rounds + 1; ++round) {
        if (round > options.rounds) {
            std::cout << "not caught in " << options.rounds << " rounds; last resort: CACHE "
                      << kLastResortCache << '\n';
            scratch->set_cache(kLastResortCache);
        }
        std::cout << "round " << round << '\n';
        if (!run_one(options, scratch, Generator::native).clean())
            return kFaultFound;
        if (run_one(options, scratch, Generator::plpgsql).duplicates > 0) {
            std::cout << "proved: native is clean, and the original was caught\n";
            return kClean;
        }
    }
    std::cout << "not proved: the original was not caught\n";
    return kFaultFound;
}

ExitStatus perform(const Options& options)
{
    switch (options.task) {
    case Task::run:
        return run(options);
    case Task::observe:
        return observe(options);
    case Task::prove:
        return prove(options);
    }
    return kCannotRun;
}

} // namespace

int main(int argc, char** argv)
{
    const Options options = parse_options(argc, argv);
    /* With --observe, standard output is for the JSON answers. */
    (options.task == Task::observe ? std::cerr : std::cout) << "seed " << options.seed << std::endl;
    try {
        return perform(options);
    } catch (const std::exception& error) {
        std::cerr << "stress: " << error.what() << '\n';
        return kCannotRun;
    }
}
