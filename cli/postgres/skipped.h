/* Changes that a subscription has skipped. */

#pragma once

#include "postgres/obstacles.h"

/* The worker skips an UPDATE or a DELETE of a row that is missing, and goes on: that is no error.
 * PostgreSQL 18 and later count them. Empty below that, and if there are none; then only a
 * comparison of the rows tells. Sessions report the count late. The hint leads on when the rows are
 * equal. */
Obstacles find_skipped(Connection& subscriber, const std::string& name);
