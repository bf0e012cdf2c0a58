#include "pgbouncer.h"

#include <cstdio>
#include <filesystem>
#include <fstream>
#include <iterator>

#include <fcntl.h>
#include <poll.h>
#include <sys/stat.h>
#include <unistd.h>

#include "output.h"

namespace
{

const char* const kBlanks = " \t\r";

/* The end of a value that begins at a place: '...' with '' for a quote, or up to a blank. */
std::size_t end_of_value(const std::string& line, std::size_t at)
{
    if (at >= line.size() || line[at] != '\'')
        return std::min(line.find_first_of(kBlanks, at), line.size());
    for (at++; at < line.size(); at++)
        if (line[at] == '\'' && (at + 1 == line.size() || line[++at] != '\''))
            return line[at - 1] == '\'' && at < line.size() ? at : line.size();
    return line.size();
}

std::string quoted(const std::string& value)
{
    if (!value.empty() && value.find_first_of(" '=") == std::string::npos)
        return value;
    std::string text;
    for (const char c : value)
        text.append(c == '\'' ? 2 : 1, c);
    return "'" + text + "'";
}

/* Replaces one setting of a connection string, or adds it at the end; all else stays. */
std::string with_setting(std::string line, std::size_t at, const std::string& key,
                         const std::string& value)
{
    while ((at = line.find_first_not_of(kBlanks, at)) != std::string::npos) {
        const std::size_t end_of_key = line.find_first_of(std::string(kBlanks) + "=", at);
        const std::size_t equals = line.find_first_not_of(kBlanks, end_of_key);
        if (equals == std::string::npos || line[equals] != '=')
            break;
        const std::size_t begin =
            std::min(line.find_first_not_of(kBlanks, equals + 1), line.size());
        const std::size_t end = end_of_value(line, begin);
        if (line.compare(at, end_of_key - at, key) == 0)
            return line.replace(begin, end - begin, quoted(value));
        at = end;
    }
    const std::size_t end = line.find_last_not_of(kBlanks) + 1;
    return line.insert(end, " " + key + "=" + quoted(value));
}

/* Where the connection string begins, if the line is that of the alias: shard5 = host=... */
std::size_t find_value(const std::string& line, const std::string& alias)
{
    const std::size_t begin = line.find_first_not_of(kBlanks);
    if (begin == std::string::npos)
        return begin;
    for (const std::string& name : {alias, "\"" + alias + "\""}) {
        const std::size_t equals = line.find_first_not_of(kBlanks, begin + name.size());
        if (line.compare(begin, name.size(), name) == 0 && equals != std::string::npos &&
            line[equals] == '=')
            return equals + 1;
    }
    return std::string::npos;
}

std::string rewritten(const std::string& text, const std::string& alias, const Connection& server,
                      const std::string& file)
{
    std::string output;
    bool is_databases = false;
    int found = 0;
    for (std::size_t begin = 0, end = 0; begin < text.size(); begin = end + 1) {
        end = std::min(text.find('\n', begin), text.size());
        std::string line = text.substr(begin, end - begin);
        if (line.find_first_not_of(kBlanks) != std::string::npos &&
            line[line.find_first_not_of(kBlanks)] == '[')
            is_databases = line.find("[databases]") != std::string::npos;
        const std::size_t value = is_databases ? find_value(line, alias) : std::string::npos;
        if (value != std::string::npos) {
            found++;
            line = with_setting(line, value, "host", server.host());
            line = with_setting(line, value, "port", server.port());
            line = with_setting(line, value, "dbname", server.database());
        }
        output += line + (end < text.size() ? "\n" : "");
    }
    if (found != 1)
        throw Failure("file " + file + " has " + std::to_string(found) + " lines of alias " +
                      alias + " in [databases], not 1");
    return output;
}

void check(bool is_done, const std::string& what, const std::string& file)
{
    if (!is_done)
        throw Failure("cannot " + what + " " + file + ": " +
                      std::generic_category().message(errno));
}

/* Whoever reads the file meets the old text or the new one, also after a crash of the machine. */
void replace_file(const std::string& file, const std::string& text)
{
    const std::string scratch = file + ".snowflake-shard";
    struct stat old;
    check(stat(file.c_str(), &old) == 0, "read", file);
    const int handle = open(scratch.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
    check(handle >= 0, "write", scratch);
    const bool is_written =
        write(handle, text.data(), text.size()) == static_cast<ssize_t>(text.size()) &&
        fchmod(handle, old.st_mode & 07777) == 0 &&
        (old.st_uid == geteuid() || fchown(handle, old.st_uid, old.st_gid) == 0) &&
        fsync(handle) == 0;
    close(handle);
    check(is_written, "write", scratch);
    check(rename(scratch.c_str(), file.c_str()) == 0, "replace", file);
    const std::string folder = std::filesystem::path(file).parent_path();
    const int folder_handle = open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    check(folder_handle >= 0 && fsync(folder_handle) == 0, "write", folder);
    close(folder_handle);
}

} // namespace

PgBouncer::PgBouncer(std::string dsn, std::string file, std::string alias)
    : dsn_(std::move(dsn)), file_(std::move(file)), alias_(std::move(alias)),
      handle_(nullptr, PQfinish)
{
    if (!dsn_.empty())
        connect();
}

void PgBouncer::connect()
{
    const char* keys[] = {"dbname", "fallback_application_name", nullptr};
    const char* values[] = {dsn_.c_str(), "snowflake-shard", nullptr};
    handle_.reset(PQconnectdbParams(keys, values, 1));
    if (PQstatus(handle_.get()) != CONNECTION_OK)
        throw Failure(std::string("PgBouncer's admin console: ") + PQerrorMessage(handle_.get()));
}

/* The console understands simple queries only. */
void PgBouncer::run(const std::string& command)
{
    const Result result(PQexec(handle_.get(), command.c_str()));
    if (!result.is_done())
        throw Failure("PgBouncer: " + command + ": " + PQerrorMessage(handle_.get()));
}

bool PgBouncer::pause(Clock::time_point deadline)
{
    if (dsn_.empty())
        return true;
    const std::string command = "PAUSE \"" + alias_ + "\"";
    paused_ = Clock::now();
    if (PQsendQuery(handle_.get(), command.c_str()) == 0)
        throw Failure("PgBouncer: " + command + ": " + PQerrorMessage(handle_.get()));
    while (PQconsumeInput(handle_.get()) == 1 && PQisBusy(handle_.get()) == 1) {
        const auto left =
            std::chrono::duration_cast<std::chrono::milliseconds>(deadline - Clock::now());
        pollfd socket = {PQsocket(handle_.get()), POLLIN, 0};
        if (left.count() <= 0 || poll(&socket, 1, static_cast<int>(left.count())) == 0) {
            connect(); /* the console of this connection waits for ever */
            resume();
            return false;
        }
    }
    const Result result(PQgetResult(handle_.get()));
    const std::string problem = PQerrorMessage(handle_.get());
    while (PGresult* next = PQgetResult(handle_.get()))
        PQclear(next);
    if (!result.is_done())
        throw Failure("PgBouncer: " + command + ": " + problem);
    return true;
}

void PgBouncer::resume()
{
    if (dsn_.empty())
        return;
    PQclear(PQexec(handle_.get(), ("RESUME \"" + alias_ + "\"").c_str()));
    if (paused_ != Clock::time_point())
        warn("PgBouncer held its clients for " + std::to_string(milliseconds_since(paused_)) +
             " ms");
    paused_ = {};
}

void PgBouncer::lead_to(const Connection& server)
{
    if (dsn_.empty())
        return;
    const std::string file = std::filesystem::canonical(file_);
    std::ifstream input(file);
    const std::string text{std::istreambuf_iterator<char>(input), std::istreambuf_iterator<char>()};
    check(input.good() || input.eof(), "read", file);
    replace_file(file, rewritten(text, alias_, server, file));
    run("RELOAD");
}
