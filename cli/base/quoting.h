/* Names and other texts as their destination reads them: one function for each. Names in SQL pass
 * identifier() and literal() of a Connection. */

#pragma once

#include <string>
#include <vector>

/* A word that can be pasted into bash or zsh. */
std::string shell_quoted(const std::string& text);

/* key='value' for a connection string of libpq. */
std::string dsn_setting(const std::string& key, const std::string& value);

/* A part of a URI: all but its unreserved characters is percent-encoded. */
std::string uri_encoded(const std::string& text);

/* A value of a database's line in PgBouncer's file, and the name of the database. A Failure names a
 * text that the file cannot hold. */
std::string pooler_value(const std::string& text);
std::string pooler_key(const std::string& alias);

/* A name in a command of PgBouncer's console. */
std::string console_name(const std::string& name);

/* Makes text safe for a terminal and for messages: control characters become \n, \t, \x1B, except
 * those in kept. */
std::string visible(const std::string& text, const std::string& kept = "");

/* Each quote twice, as SQL and CSV want it between quotes. */
std::string doubled(const std::string& text, char quote = '\'');

/* An array of SQL, as text. */
std::string sql_array(const std::vector<std::string>& texts);

/* before: in front of each. */
std::string joined(const std::vector<std::string>& texts, const std::string& separator,
                   const std::string& before = "");
