/* Settings of a session that the command needs. Those that the server does not have, or that the
 * role may not change, are left as they are. */

#pragma once

#include "postgres/connection.h"

/* Nothing that a role or the environment has set may end the statements of a move, or make its
 * commits unsafe. */
void withstand_settings(Connection& connection);

/* Until the transaction ends, statements come into no log and no statistics: they hold a connection
 * string. */
void hide_statements(Connection& connection);
