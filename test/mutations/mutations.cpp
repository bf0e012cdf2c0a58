/* Gives the readers of the command tens of thousands of texts that are nearly good. Each must be
 * read, or refused by a UsageError or a Failure: no other exception, no report of a sanitizer, no
 * endless loop, no wrong result.
 *
 *   mutations [NAME...]   the readers of these names, or all
 *   mutations --broken    readers with defects on purpose: each must fail
 *
 * SNOWFLAKE_TEST_SEED repeats a run. Built by make mutations, run by script/sanitize command. */
#include <algorithm>
#include <array>
#include <csignal>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <map>
#include <unordered_set>

#include <sys/time.h>
#include <sys/wait.h>
#include <unistd.h>

#include "postgres/connection.h"
#include "mutator.h"
#include "readers.h"

namespace
{

/* Ends the process if a text takes more processor time, which a busy machine does not change. The
 * default action of SIGPROF ends a process. */
void limit_time()
{
    constexpr int kMaxSeconds = 3;
    itimerval limit = {};
    limit.it_value.tv_sec = kMaxSeconds;
    setitimer(ITIMER_PROF, &limit, nullptr);
}

/* Whether the reader has read the text, and not refused it. The file has the text also when the
 * process is gone. */
bool read(const Reader& reader, const std::string& text, const std::string& file)
{
    std::ofstream(file, std::ios::binary) << text;
    limit_time();
    try {
        reader.read(text, file);
        return true;
    } catch (const UsageError&) {
        return false;
    } catch (const Failure&) {
        return false;
    }
}

/* Else the mutations are not those that the reader needs. */
bool has_enough(const Reader& reader, int read_count)
{
    const int enough = reader.inputs / 100;
    return read_count >= enough && (!reader.refuses || reader.inputs - read_count >= enough);
}

/* In a process of its own. Returns the exit code. */
int read_mutations(const Reader& reader, Mutator mutator, const std::string& file)
{
    std::unordered_set<std::string> texts;
    int read_count = 0;
    try {
        for (const std::string& seed : reader.seeds)
            read_count += read(reader, *texts.insert(seed).first, file) ? 1 : 0;
        while (static_cast<int>(texts.size()) < reader.inputs)
            if (const auto [text, is_new] = texts.insert(mutator.make()); is_new)
                read_count += read(reader, *text, file) ? 1 : 0;
    } catch (const WrongResult& error) {
        std::cout << reader.name << ": it does not hold that " << error.what() << std::endl;
        return 1;
    } catch (const std::exception& error) {
        std::cout << reader.name << ": neither UsageError nor Failure: " << error.what()
                  << std::endl;
        return 1;
    }
    std::cout << reader.name << ": " << reader.inputs << " different texts, " << read_count
              << " of them read" << std::endl;
    return has_enough(reader, read_count) ? 0 : 1;
}

/* With escapes, because it may have any byte. */
void show_text(const std::string& file)
{
    std::ifstream stream(file, std::ios::binary);
    const std::string text{std::istreambuf_iterator<char>(stream),
                           std::istreambuf_iterator<char>()};
    std::cout << "Its last text has " << text.size() << " bytes, and is in " << file << ":\n";
    for (const char c : text.substr(0, 1000))
        if (c == '\n' || (c >= ' ' && c <= '~' && c != '\\')) {
            std::cout << c;
        } else {
            std::array<char, 5> code = {};
            std::snprintf(code.data(), code.size(), "\\x%02x", static_cast<unsigned char>(c));
            std::cout << code.data();
        }
    std::cout << std::endl;
}

/* Returns whether the process of the reader has ended well. */
bool report(const Reader& reader, int status, const std::string& file)
{
    const bool is_good = WIFEXITED(status) && WEXITSTATUS(status) == 0;
    if (!is_good) {
        std::cout << reader.name << ": failed, "
                  << (WIFSIGNALED(status) ? strsignal(WTERMSIG(status))
                                          : "exit code " + std::to_string(WEXITSTATUS(status)))
                  << std::endl;
        show_text(file);
    } else {
        std::filesystem::remove(file);
    }
    return is_good;
}

/* All at the same time; the number of those that have failed. */
int count_failures(const std::vector<Reader>& readers, const std::vector<std::string>& names)
{
    struct Process {
        Reader reader;
        std::string file;
    };
    std::map<pid_t, Process> processes;
    std::mt19937_64 random = seeded_random("mutations");
    for (const Reader& reader : readers) {
        /* Drawn also for one that is left out: the seed gives each the same texts. */
        Mutator mutator(std::mt19937_64(random()), reader.seeds, reader.tokens);
        if (!names.empty() && std::find(names.begin(), names.end(), reader.name) == names.end())
            continue;
        const std::string file =
            std::filesystem::temp_directory_path() /
            ("mutation." + std::string(reader.name) + "." + std::to_string(getpid()));
        const pid_t process = fork();
        if (process == 0)
            std::exit(read_mutations(reader, std::move(mutator), file));
        processes[process] = {reader, file};
    }
    int failures = 0;
    for (std::size_t i = 0; i < processes.size(); i++) {
        int status = 0;
        const Process& ended = processes.at(wait(&status));
        failures += report(ended.reader, status, ended.file) ? 0 : 1;
    }
    return failures;
}

} // namespace

int main(int argc, char** argv)
{
    const std::vector<std::string> arguments(argv + 1, argv + argc);
    if (arguments != std::vector<std::string>{"--broken"})
        return count_failures(readers_of_command(), arguments) == 0 ? 0 : 1;
    const std::vector<Reader> readers = broken_readers();
    const int failures = count_failures(readers, {});
    std::cout << failures << " of " << readers.size() << " defects on purpose were found"
              << std::endl;
    return failures == static_cast<int>(readers.size()) ? 0 : 1;
}
