/* The command line: options, defaults and the usage text. */
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

/* A run that could not be made is not a finding. */
enum ExitStatus { kClean = 0, kFaultFound = 1, kCannotRun = 2 };

enum class Generator { native, plpgsql, nextval };
enum class Mode { single, batch, rows, statement, next_ids, mixed };
enum class Task { run, observe, prove };

/* The load of one client of --observe. */
struct ClientKind {
    Mode mode;
    int rows;
    bool asynchronous; /* commits do not wait for their flush */
};

struct Options {
    std::string conninfo;
    int clients = 8;
    int ids = 200000; /* for each client */
    int rows = 20000; /* for each statement */
    Mode mode = Mode::statement;
    Generator generator = Generator::native;
    Task task = Task::run;
    std::string sequence;               /* an existing one, unless --setup is given */
    std::string original = "next_id()"; /* the call of the original, unless --setup is given */
    std::vector<std::string> tolerated; /* SQLSTATEs that --observe only counts */
    std::vector<ClientKind> observed;
    int rest_ms = 0;       /* average pause of a client after each statement */
    int checkpoint_ms = 0; /* average time between two checkpoints; 0: none are requested */
    bool setup = false;
    int shard = 5;
    int cache = 1;  /* CACHE of the sequences that are set up */
    int rounds = 5; /* how often --prove tries to catch the original */
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
                        mixed      any of these at random, sometimes in transactions
  --generator NAME      native (default), plpgsql (the published original) or nextval
  --setup               make a schema with all that is needed, and drop it at the end
  --sequence NAME       instead of --setup: an existing sequence
  --original CALL       instead of --setup: the call of the original, default next_id()
  --shard N             default 5
  --cache N             CACHE of the sequences that --setup makes, default 1
  --seed N              of the random choices; default: random, and printed
  --prove               runs the same load on native and on the original: native must be clean,
                        and the original must make a duplicate
  --rounds N            how often --prove tries to catch the original, default 5
  --observe             draws until a line of input says "stop", then prints the findings as a
                        line of JSON. Any other line is answered by a line of JSON with the
                        numbers of IDs and statements so far. After "forsake" no ID that the
                        present sessions see counts as committed. A client that loses its
                        connection connects again.
  --client MODE[:ROWS[:asynchronous]]
                        adds a client to --observe; asynchronous: synchronous_commit = off
  --checkpoint MS       --observe requests a checkpoint every MS milliseconds on average
  --rest MS             each client rests MS milliseconds on average after a statement
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
    /* strtoull() accepts a minus sign and wraps around. */
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

/* Options that do not fit together are refused: the run would test something else. */
inline void require_sense(Options& options)
{
    if (options.task == Task::prove)
        options.setup = true;
    if (options.setup != options.sequence.empty())
        refuse("either --setup (implied by --prove) or --sequence is needed");
    if (options.setup && options.task == Task::observe)
        refuse("--observe needs a --sequence that is there already");
    if (options.observed.empty() != (options.task != Task::observe))
        refuse("--observe needs a --client, and --client is for it only");
}

/* One line for each option: its name, whether it has an argument, and what it sets. */
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
        {"help", kWithout,
         [](auto) {
             std::cout << kUsage;
             std::exit(kClean);
         }},
    };

    /* getopt_long() returns 0 for each of these options, and sets `index` to its number. */
    std::vector<option> table;
    for (const Known& entry : known)
        table.push_back({entry.name, entry.has_argument, nullptr, 0});
    table.push_back({nullptr, 0, nullptr, 0});

    int index = 0;
    for (int code = 0; (code = getopt_long(argc, argv, "", table.data(), &index)) != -1;) {
        if (code != 0) /* getopt_long() has printed the error */
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
