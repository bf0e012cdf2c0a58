/* Expressions that PostgreSQL writes in more than one way. */

#pragma once

#include <string>

/* The text as the server writes it after it was restored. Three things are written otherwise then,
 * and stay so. The elements of an array are cast, and not the array, which is in every IN list over
 * varchar; the first operands of AND and OR have no parentheses, which BETWEEN had; a constant
 * without a name has that of its type, which is left out here:
 *
 *   (kind)::text = ANY ((ARRAY['a'::character varying, 'b'::character varying])::text[])
 *   (kind)::text = ANY (ARRAY[('a'::character varying)::text, ('b'::character varying)::text])
 *
 *   (((n >= 1) AND (n <= 9)) AND (m > 0))
 *   ((n >= 1) AND (n <= 9) AND (m > 0))
 *
 *   SELECT a.kind FROM a UNION ALL SELECT 'b'::text
 *   SELECT a.kind FROM a UNION ALL SELECT 'b'::text AS text */
std::string as_restored(const std::string& sql);

/* The text without casts, parentheses and space, to compare an object with its restored copy.
 * Names, operators and constants stay, so another object is still a difference. */
std::string without_casts(const std::string& text);
