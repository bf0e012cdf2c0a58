#include "postgres/dsn.h"

#include <memory>

#include <libpq-fe.h>

#include "base/failure.h"
#include "base/quoting.h"

namespace
{

using Options = std::unique_ptr<PQconninfoOption, void (*)(PQconninfoOption*)>;

/* libpq takes a text with = for settings, and one that begins with postgresql:// for a URI. All
 * others are a database's name, which PQconninfoParse() would refuse. */
bool is_database_name(const std::string& dsn)
{
    return dsn.find_first_of("=:") == std::string::npos;
}

/* The text after postgresql://; empty if it is no URI. */
std::string behind_scheme(const std::string& dsn)
{
    for (const std::string scheme : {"postgresql://", "postgres://"})
        if (dsn.rfind(scheme, 0) == 0)
            return dsn.substr(scheme.size());
    return "";
}

/* libpq ends user and password at the first @, or takes none if a / comes before it. With one of
 * these in a password, the rest of it would be a host, a port or a database, and connecting would
 * show it: could not translate host name "...". An @ in the value of a parameter, after ?, does no
 * harm. */
bool has_stray_at(const std::string& dsn)
{
    if (is_database_name(dsn))
        return dsn.find('@') != std::string::npos;
    const std::string text = behind_scheme(dsn);
    const std::size_t end = text.find_first_of("@/");
    const bool has_user = end != std::string::npos && text[end] == '@';
    const std::string rest = has_user ? text.substr(end + 1) : text;
    return rest.substr(0, rest.find('?')).find('@') != std::string::npos;
}

/* libpq quotes the parts of the string that it cannot read. The messages are in English, because
 * the command calls no setlocale(). */
std::string without_quoted(std::string text)
{
    const std::size_t first = text.find('"');
    const std::size_t last = text.rfind('"');
    if (first != std::string::npos)
        text.replace(first, last + 1 - first, "\"...\"");
    return text.substr(0, text.find_last_not_of(" \n") + 1);
}

/* The password of a URI without a host counts as a port: postgresql://user:password. */
bool has_port_without_number(const Options& options)
{
    for (PQconninfoOption* option = options.get(); option->keyword != nullptr; option++)
        if (option->val != nullptr && std::string(option->keyword) == "port" &&
            std::string(option->val).find_first_not_of("0123456789, ") != std::string::npos)
            return true;
    return false;
}

Options read(const std::string& dsn, const std::string& place = "")
{
    char* message = nullptr;
    const std::string text = is_database_name(dsn) ? dsn_setting("dbname", dsn) : dsn;
    Options options(PQconninfoParse(text.c_str(), &message), PQconninfoFree);
    std::string problem = message == nullptr ? "" : without_quoted(message);
    PQfreemem(message);
    if (has_stray_at(dsn))
        problem = "an @ is not where a URI has it";
    else if (options && has_port_without_number(options))
        problem = "its port is no number";
    else if (!options && problem.empty())
        problem = "memory is out";
    if (!problem.empty())
        throw UsageError((place.empty() ? "" : place + ": ") +
                         "a connection string cannot be read: " + problem +
                         "\nHINT:  A URI is postgresql://user:password@host:port/database. In user "
                         "and password write %25 for %, %40 for @, %2F for /, %3A for :, %23 for # "
                         "and %3F for ?.");
    return options;
}

} // namespace

void check_dsn(const std::string& dsn, const std::string& place)
{
    read(dsn, place);
}

/* The last one of two equal -c settings holds, so the new ones come after those of the string. */
std::string dsn_with_options(const std::string& dsn, const std::string& more)
{
    const Options options = read(dsn);
    std::string text;
    std::string all;
    for (PQconninfoOption* option = options.get(); option->keyword != nullptr; option++)
        if (option->val != nullptr && std::string(option->keyword) == "options")
            all = option->val + std::string(" ");
        else if (option->val != nullptr)
            text += dsn_setting(option->keyword, option->val) + " ";
    return text + dsn_setting("options", all + more);
}

std::string setting_of(const std::string& dsn, const std::string& key)
{
    const Options options = read(dsn);
    for (PQconninfoOption* option = options.get(); option->keyword != nullptr; option++)
        if (option->val != nullptr && key == option->keyword)
            return option->val;
    return "";
}

/* Looks in the string alone, not in PGPASSWORD and password files. From PostgreSQL 16 on, a
 * subscription of a role that is no superuser needs the password there (password_required). */
bool has_password(const std::string& dsn)
{
    return !setting_of(dsn, "password").empty();
}

/* libpq marks secrets by a * for programs that show its options. Only the settings that were given,
 * such as sslmode or service, and not the defaults or the environment: these are the reader's
 * own. */
std::string without_secrets(const std::string& dsn, const std::set<std::string>& left_out)
{
    const Options options = read(dsn);
    std::string shown;
    for (PQconninfoOption* option = options.get(); option->keyword != nullptr; option++)
        if (option->val != nullptr && option->dispchar[0] != '*' &&
            left_out.count(option->keyword) == 0)
            shown += (shown.empty() ? "" : " ") + dsn_setting(option->keyword, option->val);
    return shown;
}

std::string printed_dsn(const Address& address, const std::string& given)
{
    const std::string others = without_secrets(given, {"host", "hostaddr", "port", "dbname"});
    return address.dsn() + (others.empty() ? "" : " " + others);
}
