#include "routers/replacement.h"

#include <algorithm>
#include <cerrno>
#include <filesystem>

#include <fcntl.h>
#include <grp.h>
#include <pwd.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/failure.h"
#include "base/files.h"

namespace
{

/* The reason is in errno, as the last call left it. */
void check(bool is_done, const std::string& what, const std::string& file)
{
    if (!is_done)
        throw Failure("cannot " + what + " " + file + ": " +
                      std::generic_category().message(errno));
}

class Handle
{
public:
    Handle(const std::string& file, int flags)
        /* O_NOFOLLOW: another user of the folder could have put a link in its place. O_CLOEXEC: a
         * flock() lasts while any process has the descriptor, and other threads start pg_dump.
         * 0600: the text may have passwords, and the owner and mode of the old file come later. */
        : number_(open(file.c_str(), flags | O_CLOEXEC | O_NOFOLLOW, 0600))
    {
        check(number_ >= 0, "open", file);
    }
    Handle(const Handle&) = delete;
    Handle& operator=(const Handle&) = delete;
    ~Handle() { close(number_); }

    int number() const { return number_; }

private:
    const int number_;
};

std::string folder_of(const std::string& path)
{
    return std::filesystem::path(path).parent_path();
}

/* Moves of several shards change one file. The folder is locked and not the file, because rename()
 * puts another file in its place. A command that is killed leaves no lock. */
struct LockedFolder : Handle {
    explicit LockedFolder(const std::string& folder) : Handle(folder, O_RDONLY | O_DIRECTORY)
    {
        check(flock(number(), LOCK_EX) == 0, "lock", folder);
    }
};

/* The scratch file is in the same folder, because rename() does not reach another file system. */
std::string scratch_of(const std::string& path)
{
    return path + ".snowflake-shard";
}

/* The new file has the owner and mode of the old one, because PgBouncer must be able to read it. A
 * leftover of a killed command is removed first, so that O_EXCL makes a file of this user. fsync()
 * comes before rename(): after a crash the name must not lead to an empty file. */
void write_scratch(const std::string& path, const std::string& text)
{
    const std::string scratch = scratch_of(path);
    struct stat old;
    check(stat(path.c_str(), &old) == 0, "read", path);
    check(unlink(scratch.c_str()) == 0 || errno == ENOENT, "remove", scratch);
    const Handle file(scratch, O_WRONLY | O_CREAT | O_EXCL);
    struct stat made;
    const bool is_written = write_all(file.number(), text) && fstat(file.number(), &made) == 0 &&
                            ((made.st_uid == old.st_uid && made.st_gid == old.st_gid) ||
                             fchown(file.number(), old.st_uid, old.st_gid) == 0) &&
                            fchmod(file.number(), old.st_mode & 07777) == 0 &&
                            fsync(file.number()) == 0;
    check(is_written, "write", scratch);
    if (read_file(scratch) != text)
        throw Failure("the text read from " + scratch + " differs from the text written to it");
}

/* A user who is not root may give a file to these groups alone (chown(2)). getgroups() need not
 * list the effective one. */
bool is_of_our_groups(gid_t group)
{
    std::vector<gid_t> groups(static_cast<std::size_t>(std::max(getgroups(0, nullptr), 0)));
    const int count = getgroups(static_cast<int>(groups.size()), groups.data());
    groups.resize(static_cast<std::size_t>(std::max(count, 0)));
    return group == getegid() || std::find(groups.begin(), groups.end(), group) != groups.end();
}

std::string name_of_user(uid_t user)
{
    const passwd* entry = getpwuid(user);
    return entry == nullptr ? std::to_string(user) : entry->pw_name;
}

std::string name_of_group(gid_t group)
{
    const ::group* entry = getgrgid(group);
    return entry == nullptr ? std::to_string(group) : entry->gr_name;
}

} // namespace

/* A symbolic link stays one: rename() would replace the link, and not the file that it leads to. */
std::string real_path(const std::string& file)
{
    std::error_code error;
    const std::filesystem::path path = std::filesystem::canonical(file, error);
    if (error)
        throw Failure("cannot read " + file + ": " + error.message());
    return path;
}

std::vector<FileProblem> find_problems(const std::string& file)
{
    std::string path;
    try {
        path = real_path(file);
        read_file(path);
    } catch (const Failure& error) {
        return {{error.what(),
                 "Run snowflake-shard on the machine of PgBouncer, as a user who may read its "
                 "configuration, and give the file of the aliases as --config."}};
    }
    struct stat old;
    check(stat(path.c_str(), &old) == 0, "read", path);
    std::vector<FileProblem> found;
    /* rename() needs the right to write to the folder, and none on the file. */
    if (access(folder_of(path).c_str(), W_OK | X_OK) != 0)
        found.push_back(
            {path + " cannot be replaced: user " + name_of_user(geteuid()) + " may not write to " +
                 folder_of(path),
             "Put the aliases into a file in a folder of that user, and let "
             "PgBouncer's configuration %include it: docs/pgbouncer.md has the steps."});
    if (geteuid() != 0 && (old.st_uid != geteuid() || !is_of_our_groups(old.st_gid)))
        found.push_back({path + " cannot be replaced: it belongs to " + name_of_user(old.st_uid) +
                             ":" + name_of_group(old.st_gid) + ", and user " +
                             name_of_user(geteuid()) + " cannot give that to a new file",
                         "Run snowflake-shard as user " + name_of_user(old.st_uid) +
                             ", who must be a member of group " + name_of_group(old.st_gid) + "."});
    return found;
}

/* Writes the scratch file before the cutover, so that a full disk or a missing right is found while
 * clients still write. */
void prepare_file(const std::string& file, const Edit& edit)
{
    const std::string path = real_path(file);
    const LockedFolder folder(folder_of(path));
    write_scratch(path, edit(read_file(path)));
}

void replace_file(const std::string& file, const Edit& edit)
{
    const std::string path = real_path(file);
    const std::string scratch = scratch_of(path);
    const LockedFolder folder(folder_of(path));
    const std::string old = read_file(path);
    const std::string text = edit(old);
    /* A resumed command may find that the file leads to the target already. */
    if (text == old)
        return discard_prepared(path);
    /* The prepared text can be missing (--resume after the cutover), or be of an older state of
     * the file. */
    if (access(scratch.c_str(), F_OK) != 0 || read_file(scratch) != text)
        write_scratch(path, text);
    check(rename(scratch.c_str(), path.c_str()) == 0, "replace", path);
    /* A crash must not bring back the old aliases, which lead to a fenced source. */
    check(fsync(folder.number()) == 0, "write", folder_of(path));
}

void discard_prepared(const std::string& file)
{
    std::error_code error;
    const std::filesystem::path path = std::filesystem::canonical(file, error);
    if (!error) /* else the path is empty, and a file of the current folder would be removed */
        std::filesystem::remove(scratch_of(path), error);
}
