/* The files of this folder as texts: fence.sql is fence_sql. The Makefile makes them. */

#pragma once

extern const char definition_sql[];
extern const char fence_sql[];
extern const char fingerprint_sql[];
extern const char split_sql[];
