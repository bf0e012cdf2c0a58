#include "pgbouncer.h"

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <set>
#include <sstream>

#include <fcntl.h>
#include <poll.h>
#include <sys/stat.h>
#include <unistd.h>

#include "match.h"
#include "output.h"

namespace
{

/* The name. */
const char* const kSection = R"(^[[:space:]]*\[(.*)\][[:space:]]*$)";
/* shard5 = host=... of the section [databases]: all up to the settings, the name, the settings, the
 * space behind them. */
const char* const kDatabase = R"(^([[:space:]]*("[^"]*"|[^[:space:]=]+)[[:space:]]*=[[:space:]]*))"
                              R"((.*[^[:space:]])?([[:space:]]*)$)";
/* A setting, its name, its value, its last character, what follows; '' is a quote between quotes.
 */
const char* const kSetting = R"((([[:alnum:]_]+)[[:space:]]*=[[:space:]]*)"
                             R"(('([^']|'')*'|[^'[:space:]][^[:space:]]*)?)(.*)$)";

std::string quoted(const std::string& value)
{
    if (!value.empty() && value.find_first_of(" '=") == std::string::npos)
        return value;
    return "'" + doubled(value) + "'";
}

/* All settings other than the server's stay as they are. */
std::string with_server(const std::string& settings, const Connection& server)
{
    std::string text = "host=" + quoted(server.host()) + " port=" + server.port() +
                       " dbname=" + quoted(server.database());
    const std::set<std::string> replaced = {"host", "port", "dbname"};
    for (auto found = match(settings, kSetting); !found.empty();
         found = match(found.back(), kSetting))
        if (replaced.count(found[2]) == 0)
            text += " " + found[1];
    return text;
}

std::string with_alias(const std::string& text, const std::string& alias, const Connection& server,
                       const std::string& file)
{
    std::istringstream input(text);
    std::string output;
    bool is_databases = false;
    int found = 0;
    for (std::string line; std::getline(input, line); output += line + (input.eof() ? "" : "\n")) {
        const auto section = match(line, kSection);
        if (!section.empty())
            is_databases = section[1] == "databases";
        const auto database = match(line, kDatabase);
        if (is_databases && !database.empty() &&
            (database[2] == alias || database[2] == "\"" + alias + "\"")) {
            found++;
            line = database[1] + with_server(database[3], server) + database[4];
        }
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
    const std::string folder = std::filesystem::path(file).parent_path();
    struct stat old;
    check(stat(file.c_str(), &old) == 0, "read", file);
    const int handle = open(scratch.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
    const bool is_written =
        handle >= 0 && write(handle, text.data(), text.size()) == ssize_t(text.size()) &&
        fchmod(handle, old.st_mode & 07777) == 0 &&
        (old.st_uid == geteuid() || fchown(handle, old.st_uid, old.st_gid) == 0) &&
        fsync(handle) == 0 && close(handle) == 0;
    check(is_written, "write", scratch);
    check(rename(scratch.c_str(), file.c_str()) == 0, "replace", file);
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
void PgBouncer::run(const std::string& command, Clock::time_point deadline)
{
    if (PQsendQuery(handle_.get(), command.c_str()) == 1)
        while (PQconsumeInput(handle_.get()) == 1 && PQisBusy(handle_.get()) == 1) {
            if (Clock::now() > deadline)
                throw Late("PgBouncer: " + command + " did not end in time");
            pollfd socket = {PQsocket(handle_.get()), POLLIN, 0};
            poll(&socket, 1, 10);
        }
    const Result result(PQgetResult(handle_.get()));
    const std::string problem = PQerrorMessage(handle_.get());
    while (PGresult* next = PQgetResult(handle_.get()))
        PQclear(next);
    if (!result.is_done())
        throw Failure("PgBouncer: " + command + ": " + problem);
}

void PgBouncer::pause(Clock::time_point deadline)
{
    if (dsn_.empty())
        return;
    paused_ = Clock::now();
    run("PAUSE \"" + alias_ + "\"", deadline);
}

void PgBouncer::resume()
{
    if (dsn_.empty())
        return;
    connect(); /* a console waits for its PAUSE for ever */
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
    replace_file(file, with_alias(text, alias_, server, file));
    run("RELOAD");
}
