/* Connection strings, as they are given to the command. They may have a password, so no error
 * repeats a part of one. */

#pragma once

#include <set>
#include <string>

#include "base/address.h"

/* UsageError if libpq cannot read it, or would take a part of a password for another setting.
 * place: where it was given, such as --from. */
void check_dsn(const std::string& dsn, const std::string& place = "");

/* The connection string with more settings for the session (-c name=value), after its own. */
std::string dsn_with_options(const std::string& dsn, const std::string& more);

/* The setting in the string alone; "" if it is not there. */
std::string setting_of(const std::string& dsn, const std::string& key);

bool has_password(const std::string& dsn);

/* The address that answered, and the other settings of the string that was given, without secrets:
 * for plans and commands. */
std::string printed_dsn(const Address& address, const std::string& given);

/* The settings of the string without secrets, for messages and plans. */
std::string without_secrets(const std::string& dsn, const std::set<std::string>& left_out = {});
