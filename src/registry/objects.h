/*
 * Objects that can call a native function: their stored expressions, and their dependencies.
 */
#pragma once

#include "registry/uses.h"

namespace snowflake::registry
{

/* The calls in the object's own expressions, as a List of Call*. */
List* own_calls(const NativeFunctions& natives, const Caller& caller);

/*
 * A List of Caller*: the columns, functions and domains whose expressions name this function, or
 * the columns that have their DEFAULT from this domain.
 */
List* dependents_of(Oid catalog, Oid object);

/* A list of the functions that the object's own expressions name. */
List* functions_named_by(const Caller& caller);

/* The domain that gives the column its DEFAULT; InvalidOid: none does. */
Oid default_domain(const Caller& column);

} // namespace snowflake::registry
