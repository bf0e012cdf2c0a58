/*
 * Whose rights hold where text or a query of the caller works on objects of an owner. The only
 * place that decides this: the functions of as_owner.cpp ask it, and the command asks nothing.
 *
 * The rights are those of the owner, in a security-restricted operation, if the caller may act as
 * the owner and the owner is neither the caller nor a superuser. Else they are those of the caller:
 * code of a superuser has no right to gain, and who may not act as the owner has its own rights
 * alone, as in psql.
 */
#pragma once

#include "pg.h"

namespace snowflake::owner
{

/* The state that become_again() restores. role: for error messages; null if the rights are the
 * caller's. */
struct Rights {
    Oid user;
    int context;
    int settings;
    const char* role;
    const char* object;
    ErrorContextCallback callback;

    bool are_of_owner() const { return role != nullptr; }
};

/*
 * search_path is empty. An error of a missing privilege names the role (CONTEXT). Rights must stay
 * where they are until become_again(): the stack of error contexts points to them. After an error
 * AbortTransaction() or AbortSubTransaction() restores the user and the settings.
 */
/* 42501 if the caller may not act as the role. */
void become_role(Rights& rights, Oid role);
void become_again(const Rights& rights);

Oid of_table(Oid table); /* 42P01; the caller holds a lock on it */
Oid of_function(Oid function);

/* Whether SQL in the schema would have the caller's rights; it is locked as a table is. */
bool is_callers(Oid schema);

void set(const char* setting, const char* value); /* until AtEOXact_GUC() of the nest level */

} // namespace snowflake::owner
