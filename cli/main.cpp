/* snowflake-shard: errors of the command line, and the exit code. */

#include "arguments/command_line.h"
#include "arguments/global.h"
#include "arguments/moves.h"
#include "arguments/shards.h"
#include "base/failure.h"
#include "base/output.h"
#include "base/standard_output.h"
#include "base/suggestion.h"

namespace
{

/* All verbs, in the order of the help. */
struct Arguments {
    CommandLine line;
    ShardArguments shards{line};
    MoveArguments moves{line};
    GlobalArguments global{line};
};

/* Options of a group are options of its verb; CLI11 has a group as a subcommand without a name. */
std::vector<std::string> options_of(const CLI::App& verb)
{
    std::vector<std::string> names;
    for (const CLI::Option* option : verb.get_options())
        for (const std::string& name : option->get_lnames())
            names.push_back("--" + name);
    for (const CLI::App* group : verb.get_subcommands(nullptr))
        if (group->get_name().empty())
            for (const std::string& name : options_of(*group))
                names.push_back(name);
    return names;
}

std::vector<std::string> verbs_of(const CLI::App& app)
{
    std::vector<std::string> names;
    for (const CLI::App* verb : app.get_subcommands(nullptr))
        names.push_back(verb->get_name());
    return names;
}

/* A connection string in a wrong place may have a password: after no option, after one that takes a
 * number, or after an option without a space. */
std::string without_dsns(std::string problem, const std::vector<std::string>& words)
{
    for (const std::string& word : words)
        for (const std::string& text :
             {word, word.substr(0, word.find('=')), word.substr(word.find('=') + 1)})
            if (const std::size_t at = problem.find(text);
                text.find_first_of("=:@") != std::string::npos && at != std::string::npos)
                problem.replace(at, text.size(), "...");
    return problem;
}

/* Reports an unknown word before a missing argument, because the second often follows from the
 * first; CLI11 reports them the other way round. */
std::string wrong_usage(const CLI::App& app, const CLI::ParseError& error,
                        const std::vector<std::string>& words)
{
    const bool has_verb = app.remaining().empty() && !app.get_subcommands().empty();
    const CLI::App* deepest = &app;
    std::string verb;
    while (has_verb && !deepest->get_subcommands().empty()) {
        deepest = deepest->get_subcommands()[0];
        verb += (verb.empty() ? "" : " ") + deepest->get_name();
    }
    const CLI::App& asked = *deepest;
    /* "global" has verbs of its own. */
    const bool lacks_verb = asked.get_require_subcommand_min() > 0;
    std::string problem = lacks_verb ? "a verb is missing" : error.what();
    for (const std::string& argument : asked.remaining(true)) {
        /* Only the name in --option=value is compared with the known options. */
        const std::string word = argument.substr(0, argument.find('='));
        /* CLI11 leaves it among the words. Only positional arguments come after it. */
        if (word == "--")
            continue;
        if (word[0] == '-')
            problem = "no option " + word + suggestion(word, options_of(asked));
        else if (!lacks_verb)
            problem = "one argument too many: " + argument;
        else
            problem = "no verb " + word + suggestion(word, verbs_of(app));
        break;
    }
    return (has_verb ? verb + ": " : "") + without_dsns(problem, words) +
           "\nHINT:  snowflake-shard " +
           (has_verb ? verb + " --help shows its " + (lacks_verb ? "verbs." : "arguments.")
                     : "--help shows the verbs.");
}

/* "help move" is "move --help", and "version" is "--version". */
std::vector<std::string> read_words(int argc, char** argv)
{
    std::vector<std::string> words(argv + 1, argv + argc);
    if (!words.empty() && words[0] == "help") {
        words.erase(words.begin());
        words.emplace_back("--help");
    } else if (words == std::vector<std::string>{"version"}) {
        words = {"--version"};
    }
    return words;
}

int execute(int argc, char** argv)
{
    try {
        const std::vector<std::string> words = read_words(argc, argv);
        Arguments arguments;
        try {
            /* CLI11 takes them from the end. */
            arguments.line.app.parse(std::vector<std::string>(words.rbegin(), words.rend()));
        } catch (const CLI::ParseError& error) {
            /* CLI11 raises --help and --version as errors with exit code 0; exit() prints their
             * text. */
            if (error.get_exit_code() != 0)
                throw UsageError(wrong_usage(arguments.line.app, error, words));
            return arguments.line.app.exit(error); /* --help, --version */
        }
        arguments.line.check_dsns();
        return arguments.line.function();
    } catch (const UsageError& error) {
        warn(error.what());
        return kWrongUsage;
    } catch (const std::exception& error) {
        warn(error.what());
        return kFailed;
    }
}

} // namespace

int main(int argc, char** argv)
{
    open_output();
    const int code = execute(argc, argv);
    try {
        close_output();
        return code;
    } catch (const Failure& error) {
        warn(error.what());
        return kFailed;
    }
}
