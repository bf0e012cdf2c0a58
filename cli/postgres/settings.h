/* Settings of a session that the command needs. A setting that the server does not have, or that
 * the role may not change, is left as it is. */

#pragma once

#include "postgres/connection.h"

/* Nothing that a role or the environment has set may end the statements of a move, or make its
 * commits unsafe. */
void withstand_settings(Connection& connection);

/* Keeps statements out of logs and statistics until the transaction ends: they hold a connection
 * string. */
void hide_statements(Connection& connection);
