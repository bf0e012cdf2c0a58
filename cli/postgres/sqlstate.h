/* The SQLSTATEs that the command reacts to. */

#pragma once

constexpr const char* kConnectionFailure = "08006"; /* the session of an owner has ended */
constexpr const char* kInvalidParameter = "22023";
constexpr const char* kActiveTransaction =
    "25001"; /* a statement that cannot run in a transaction */
constexpr const char* kReadOnlyTransaction = "25006";
constexpr const char* kEndsTransaction = "2D000"; /* a statement that would end the transaction */
constexpr const char* kPasswordRequired =
    "2F003"; /* a connection for which no password was asked */
constexpr const char* kUndefinedSchema = "3F000";
constexpr const char* kSerializationFailure = "40001";
constexpr const char* kDeadlock = "40P01"; /* with a session that takes locks in another order */
constexpr const char* kInsufficientPrivilege = "42501";
constexpr const char* kUndefinedColumn = "42703";
constexpr const char* kUndefinedObject = "42704";
constexpr const char* kUndefinedFunction = "42883";
constexpr const char* kUndefinedTable = "42P01";
constexpr const char* kInsufficientResources = "53000"; /* no background worker is free */
constexpr const char* kLockTimeout = "55P03";           /* lock_timeout, NOWAIT */
constexpr const char* kQueryCanceled = "57014";
