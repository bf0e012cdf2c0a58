/* The command line. */
#pragma once

#include <getopt.h>

#include <cstdint>
#include <cstdlib>
#include <functional>
#include <iostream>
#include <random>
#include <sstream>
#include <string>
#include <utility>
#include <vector>

namespace stress
{

/* A run that cannot be made is not a run that found something. */
enum ExitStatus { kClean = 0, kFaultFound = 1, kCannotRun = 2 };

enum class Generator { native, plpgsql, nextval };
enum class Mode { single, batch, rows, statement, next_ids, mixed };
enum class Task { run, observe, prove, rollout };

/* What one client of --observe does all the time. */
struct ClientKind {
    Mode mode;
    int rows;
    bool asynchronous; /* commits do not wait for their flush */
};

struct Options {
    std::string conninfo;
    int clients = 8;
    int ids = 200000; /* of each client */
    int rows = 20000; /* of each statement */
    Mode mode = Mode::statement;
    Generator generator = Generator::native;
    Task task = Task::run;
    std::string sequence;               /* an existing one, where nothing is set up */
    std::string original = "next_id()"; /* of the schema in the path, where nothing is set up */
    std::vector<std::string> tolerated; /* SQLSTATEs that --observe counts and goes on after */
    std::vector<ClientKind> observed;
    int rest_ms = 0;       /* of a client after each statement, on average */
    int checkpoint_ms = 0; /* between two checkpoints, on average; 0: none are asked for */
    bool setup = false;
    int shard = 5;
    int cache = 1;  /* CACHE of the sequences that are set up */
    int rounds = 5; /* bound of --prove */
    std::uint64_t seed = std::random_device{}();
};

constexpr const char* kUsage = R"(Usage: stress [OPTION]...
Draws IDs in many sessions at once and looks for duplicates and violations of order.

  --conninfo STRING     of the server; default: the PG* environment variables
  --clients N           sessions, default 8
  --ids N               IDs of each session, default 200000
  --rows N              rows of a multi-row statement, default 20000
  --mode MODE           single     one ID a round trip
                        batch      many single-ID queries a round trip (pipeline)
                        rows       multi-row statements, each row seen as it arrives
                        statement  multi-row statements (default)
                        next_ids   snowflake_next_ids(); other generators: statement
                        mixed      any of them by chance, some of it in transactions
  --generator NAME      native (default), plpgsql (the published original) or nextval
  --setup               make a schema with all that is needed, and drop it at the end
  --sequence NAME       instead of --setup: an existing sequence
  --original CALL       instead of --setup: the call of the original, default next_id()
  --shard N             default 5
  --cache N             CACHE of the sequences that --setup makes, default 1
  --seed N              for --mode mixed; default: by chance, and printed
  --prove               the same load on native and on the original: native must be clean, and
                        the original must be caught
  --rounds N            so often does --prove try to catch the original, default 5
  --rollout             native and original side by side on one sequence
  --observe             until a line of input says "stop": a client that loses its server looks
                        for it again, and writes on. Any other line is answered by one line of
                        JSON with what was seen so far, the end by one with the findings. After
                        "forsake" nothing counts as committed of what the present sessions see.
  --client MODE[:ROWS[:asynchronous]]
                        a client of --observe, one each time it is given; asynchronous: with
                        synchronous_commit = off
  --checkpoint MS       --observe asks for checkpoints, so far apart on average
  --rest MS             each client rests after a statement, so long on average
  --tolerate STATES     SQLSTATEs, separated by commas, that --observe only counts
  --help

Exit status: 0 clean, 1 duplicates or violations of order, 2 the run could not be made.
)";

[[noreturn]] inline void refuse(const std::string& message)
{
    std::cerr << "stress: " << message << "\nTry 'stress --help'.\n";
    std::exit(kCannotRun);
}

inline std::uint64_t number_from(const char* name, std::uint64_t low, std::uint64_t high)
{
    char* end = nullptr;
    const unsigned long long value = std::strtoull(optarg, &end, 10);
    /* strtoull() takes a minus sign, and wraps. */
    if (*optarg < '0' || *optarg > '9' || *end != '\0' || value < low || value > high)
        refuse(std::string("--") + name + " takes a number from " + std::to_string(low) + " to " +
               std::to_string(high));
    return value;
}

inline int int_from(const char* name, std::uint64_t low, int high)
{
    return static_cast<int>(number_from(name, low, static_cast<std::uint64_t>(high)));
}

template <typename Value, std::size_t Size>
Value named_value(const std::pair<const char*, Value> (&values)[Size], const std::string& name)
{
    for (const auto& [known, value] : values) {
        if (name == known)
            return value;
    }
    refuse("unknown: " + name);
}

constexpr std::pair<const char*, Mode> kModes[] = {
    {"single", Mode::single},       {"batch", Mode::batch},       {"rows", Mode::rows},
    {"statement", Mode::statement}, {"next_ids", Mode::next_ids}, {"mixed", Mode::mixed}};

constexpr std::pair<const char*, Generator> kGenerators[] = {{"native", Generator::native},
                                                             {"plpgsql", Generator::plpgsql},
                                                             {"nextval", Generator::nextval}};

inline const char* name_of(Generator generator)
{
    for (const auto& [name, value] : kGenerators) {
        if (value == generator)
            return name;
    }
    return "";
}

inline std::vector<std::string> split(const std::string& list, char separator)
{
    std::vector<std::string> words;
    std::istringstream stream(list);
    for (std::string word; std::getline(stream, word, separator);)
        words.push_back(word);
    return words;
}

inline ClientKind client_kind(const std::string& description)
{
    const std::vector<std::string> words = split(description, ':');
    if (words.empty() || words.size() > 3 || (words.size() == 3 && words[2] != "asynchronous"))
        refuse("--client takes MODE[:ROWS[:asynchronous]]");
    const int rows = words.size() > 1 ? std::atoi(words[1].c_str()) : 1;
    if (rows < 1)
        refuse("--client: ROWS is a number from 1 on");
    return {named_value(kModes, words[0]), rows, words.size() == 3};
}

/* What does not go together would otherwise test something else than was asked for. */
inline void require_sense(Options& options)
{
    if (options.task == Task::prove || options.task == Task::rollout)
        options.setup = true;
    if (options.setup != options.sequence.empty())
        refuse("either --setup (implied by --prove and --rollout) or --sequence is needed");
    if (options.setup && options.task == Task::observe)
        refuse("--observe needs a --sequence that is there already");
    if (options.observed.empty() != (options.task != Task::observe))
        refuse("--observe needs a --client, and --client is for it only");
    if (options.task == Task::rollout && options.clients < 2)
        refuse("--rollout needs two clients or more");
}

/* An option and what it does stand in one line, so that neither is forgotten. */
inline Options parse_options(int argc, char** argv)
{
    struct Known {
        const char* name;
        int has_argument;
        std::function<void(const char* name)> take;
    };
    constexpr int kWith = required_argument;
    constexpr int kWithout = no_argument;
    Options o;
    const std::vector<Known> known = {
        {"conninfo", kWith, [&](auto) { o.conninfo = optarg; }},
        {"clients", kWith, [&](auto name) { o.clients = int_from(name, 1, 1000); }},
        {"ids", kWith, [&](auto name) { o.ids = int_from(name, 1, 100000000); }},
        {"rows", kWith, [&](auto name) { o.rows = int_from(name, 1, 10000000); }},
        {"mode", kWith, [&](auto) { o.mode = named_value(kModes, optarg); }},
        {"generator", kWith, [&](auto) { o.generator = named_value(kGenerators, optarg); }},
        {"setup", kWithout, [&](auto) { o.setup = true; }},
        {"sequence", kWith, [&](auto) { o.sequence = optarg; }},
        {"shard", kWith, [&](auto name) { o.shard = int_from(name, 0, 8191); }},
        {"cache", kWith, [&](auto name) { o.cache = int_from(name, 1, 1000000000); }},
        {"original", kWith, [&](auto) { o.original = optarg; }},
        {"client", kWith, [&](auto) { o.observed.push_back(client_kind(optarg)); }},
        {"checkpoint", kWith, [&](auto name) { o.checkpoint_ms = int_from(name, 1, 60000); }},
        {"rest", kWith, [&](auto name) { o.rest_ms = int_from(name, 1, 60000); }},
        {"tolerate", kWith, [&](auto) { o.tolerated = split(optarg, ','); }},
        {"observe", kWithout, [&](auto) { o.task = Task::observe; }},
        {"seed", kWith, [&](auto name) { o.seed = number_from(name, 0, UINT64_MAX); }},
        {"prove", kWithout, [&](auto) { o.task = Task::prove; }},
        {"rounds", kWith, [&](auto name) { o.rounds = int_from(name, 1, 1000); }},
        {"rollout", kWithout, [&](auto) { o.task = Task::rollout; }},
        {"help", kWithout,
         [](auto) {
             std::cout << kUsage;
             std::exit(kClean);
         }},
    };

    /* getopt_long() answers 0 for each of them, and says in `index` which it was. */
    std::vector<option> table;
    for (const Known& entry : known)
        table.push_back({entry.name, entry.has_argument, nullptr, 0});
    table.push_back({nullptr, 0, nullptr, 0});

    int index = 0;
    for (int code = 0; (code = getopt_long(argc, argv, "", table.data(), &index)) != -1;) {
        if (code != 0) /* it has said what is wrong */
            std::exit(kCannotRun);
        const Known& entry = known[static_cast<std::size_t>(index)];
        entry.take(entry.name);
    }
    if (optind != argc)
        refuse(std::string("unexpected argument ") + argv[optind]);
    require_sense(o);
    return o;
}

} // namespace stress
