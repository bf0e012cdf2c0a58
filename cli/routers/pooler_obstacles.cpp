#include "routers/pgbouncer.h"

#include <map>

#include "postgres/identity.h"
#include "routers/pooler_host.h"

namespace
{

/* One look at a PgBouncer: its console, the file of the aliases, and its configuration. If one of
 * them cannot be read, that is an obstacle, and the questions that need it are left out. */
class Inspection
{
public:
    Inspection(PgBouncer& bouncer, Connection& source) : bouncer_(bouncer), source_(source) {}

    Obstacles find()
    {
        const bool is_console = has_console();
        const bool is_readable = has_file();
        if (is_console) {
            look_where_alias_leads();
            look_at_pooling();
        }
        if (is_console && is_readable)
            look_at_configuration();
        return found_;
    }

private:
    void add(const std::string& problem, const std::string& hint)
    {
        found_.add(bouncer_.name(), problem, hint);
    }

    bool has_console();
    bool has_file();
    void look_where_alias_leads();
    void look_at_pooling();
    void look_at_configuration();

    void compare_with_source(const Aliases& aliases, Address place);
    void read_configuration(const std::string& path, const std::string& reader);

    PgBouncer& bouncer_;
    Connection& source_;
    const std::string& file_ = bouncer_.pooler().file;
    const PoolerHost host_ = PoolerHost(bouncer_.pooler().command);
    const Aliases& aliases_ = bouncer_.pooler().aliases;
    std::map<std::string, std::vector<AliasLine>> lines_;
    std::map<std::string, std::string> texts_; /* of the files that PgBouncer reads */
    Obstacles found_;
};

bool Inspection::has_console()
{
    try {
        bouncer_.require_admin();
        return true;
    } catch (const Failure& error) {
        add(std::string("its admin console cannot be used: ") + error.what(),
            "Give --pgbouncer the database pgbouncer, and a user of admin_users.");
        return false;
    }
}

bool Inspection::has_file()
{
    for (const FileProblem& problem : host_.find_problems(file_))
        add(problem.problem, problem.hint);
    try {
        lines_ = lines_of(host_.read(file_), aliases_);
    } catch (const Failure&) {
        /* find_problems() has named the reason. */
        return false;
    }
    Aliases missing;
    for (const std::string& alias : aliases_)
        if (lines_.count(alias) == 0)
            missing.insert(alias);
    if (!missing.empty())
        add(file_ + " has no " + named(missing) + " in a section [databases]",
            "Give the file of the alias as --config, or another name of the alias as --alias.");
    for (const auto& [alias, lines] : lines_)
        if (lines.size() > 1)
            add(file_ + " has alias " + alias + " " + std::to_string(lines.size()) +
                    " times, the second time in line " + std::to_string(lines[1].number),
                "Remove all but one of these lines, and RELOAD.");
    return true;
}

void Inspection::look_where_alias_leads()
{
    const std::map<std::string, Address> places = bouncer_.places();
    Aliases missing;
    std::map<std::string, std::pair<Address, Aliases>> by_place; /* many have the same */
    for (const std::string& alias : aliases_) {
        const auto found = places.find(alias);
        if (found == places.end()) {
            missing.insert(alias);
            continue;
        }
        const Address& place = found->second;
        by_place[place.text()].first = place;
        by_place[place.text()].second.insert(alias);
        /* Either the file was changed without a RELOAD, or PgBouncer has the
         * alias from another file. */
        if (const auto& lines = lines_[alias]; lines.size() == 1 && !(lines[0].place == place))
            add("alias " + alias + " leads to " + visible(place.text()) + ", and to " +
                    visible(lines[0].place.text()) + " in line " + std::to_string(lines[0].number) +
                    " of " + file_,
                "Correct the line, or RELOAD.");
    }
    if (!missing.empty())
        add("it has no " + named(missing) + ": SHOW DATABASES does not list it",
            "Write its line into [databases], and RELOAD.");
    for (const auto& [text, place] : by_place)
        compare_with_source(place.second, place.first);
}

/* A standby has the system identifier of its primary, but another start. */
void Inspection::compare_with_source(const Aliases& aliases, Address place)
{
    if (place.host.empty())
        place.host = bouncer_.setting("unix_socket_dir");
    if (!is_address_of(place, source_))
        add(named(aliases) + (aliases.size() == 1 ? " leads" : " lead") + " to " +
                visible(place.text()) + ", which is not the source, " + source_.server(),
            "Let the alias lead to the source, or name it by --alias, or the source by --from.");
}

/* PAUSE waits until every client has released its connection to the server. */
void Inspection::look_at_pooling()
{
    for (const auto& [user, found] : bouncer_.with_session_pooling())
        if (!found.empty())
            add(named(found) + (found.size() == 1 ? " has" : " have") + " pool_mode = session" +
                    (user.empty() ? "" : " for user " + visible(user)) +
                    ", so PAUSE would wait until the last client disconnects",
                "Write pool_mode=transaction into the line of the " +
                    std::string(user.empty() ? "alias" : "user in [users]") + ", and RELOAD.");
}

/* RELOAD reads the file of the settings, and the files that it includes. */
void Inspection::look_at_configuration()
{
    const std::string main = bouncer_.setting("conffile");
    const std::string file = host_.real_path(file_);
    const std::size_t before = found_.size();
    read_configuration(main, "");
    if (texts_.count(file) == 0) {
        /* If a file could not be read, it can be the one that includes this. That
         * is among the obstacles. */
        if (found_.size() == before)
            add("it does not read " + file + ": its configuration is " + main +
                    (texts_.size() > 1 ? " with its included files" : ""),
                "Write %include " + file + " into the first line of " + main +
                    ", and RELOAD; or give the file that it reads as --config.");
        return;
    }
    found_.resize(before); /* other files do not matter */
    for (const auto& [path, text] : texts_)
        if (path != file)
            for (const auto& [alias, lines] : lines_of(text, aliases_)) {
                const bool is_here = !lines_[alias].empty();
                add("alias " + alias + " is in " + path + (is_here ? ", too" : ""),
                    is_here ? "Remove it there, or give that file as --config."
                            : "Give that file as --config.");
            }
}

void Inspection::read_configuration(const std::string& path, const std::string& reader)
{
    if (path.empty() || path[0] != '/')
        return add((reader.empty() ? "its conffile is " : reader + " includes ") + path +
                       ", which depends on the folder where PgBouncer was started",
                   reader.empty() ? "SET conffile = '/...' in the console, with the whole path."
                                  : "Write the whole path into the %include, and RELOAD.");
    std::string real;
    try {
        real = host_.real_path(path);
        /* Files can include each other. */
        if (texts_.count(real) > 0)
            return;
        texts_[real] = host_.read(real);
    } catch (const Failure& failure) {
        return add(std::string(failure.what()) + ", so it is not known whether PgBouncer reads " +
                       file_,
                   "Run snowflake-shard on the machine of PgBouncer, as a user who may read its "
                   "configuration.");
    }
    for (const std::string& include : includes_of(texts_[real]))
        read_configuration(include, real);
}

} // namespace

Obstacles find_obstacles(PgBouncer& bouncer, Connection& source)
{
    return Inspection(bouncer, source).find();
}
