/* Text with marks in place of a shard's name and number, so that the definitions of two shards can
 * be compared. */

#pragma once

#include <string>

#include "base/shards.h"
#include "definition/entries.h"

/* The number where the server's text has it as a shard: snowflake_next_id(5, ...),
 * snowflake_shard(id) = 5. All other numbers stay: a constant 5 has nothing to do with shard 5. */
std::string mark_number(std::string sql, int number);

/* The name and the number. Comments and functions are kept as text: in these, the name is marked
 * wherever it stands alone. */
Entry mark(Entry entry, const Shard& shard);

/* In comments and bodies of functions, the name of another shard, too. */
void mark_in_text(Entry& entry, const Shard& other);

/* Whether a name is marked in a comment or in the body of a function. */
bool is_marked_in_text(const Entry& entry);

/* The name and the number of the shard in place of the marks. Directly behind a quote, which begins
 * a constant such as 'insta5.table_id_seq', the quotes in the name are doubled. */
std::string unmark(const std::string& marked, const Shard& shard);

/* The marks: characters that names and texts do not have in practice. A statement that is to be run
 * must not have them of itself: renumbering_of() checks that. In a comparison they only make two
 * texts equal or different. */
constexpr char kNameMark = '\1';
constexpr char kNumberMark = '\2';
