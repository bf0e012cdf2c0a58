/* The statements of this folder as texts of the program: after "-- name: fence" comes fence_sql.
 * The Makefile makes them, without the comments. */

#pragma once

/* decoding.sql */
extern const char refused_plugins_sql[];

/* definition.sql */
extern const char definition_sql[];
extern const char dependents_sql[];
extern const char extensions_in_sql[];
extern const char privileges_sql[];
extern const char renumbering_sql[];
extern const char given_objects_sql[];

/* extension.sql */
extern const char kept_extension_sql[];

/* fence.sql */
extern const char fence_sql[];
extern const char closing_by_owner_sql[];

/* findings.sql */
extern const char leftovers_sql[];
extern const char checks_sql[];
extern const char invalid_indexes_sql[];
extern const char id_columns_sql[];
extern const char other_ids_sql[];
extern const char counted_keys_sql[];

/* fingerprint.sql */
extern const char fingerprint_sql[];

/* fleet.sql */
extern const char makers_sql[];
extern const char broken_following_sql[];
extern const char unsubscribed_sql[];
extern const char locked_schemas_sql[];
extern const char outside_children_sql[];

/* global.sql */
extern const char unpublishable_sql[];
extern const char table_objects_sql[];

/* needed.sql */
extern const char needed_sql[];
extern const char found_sql[];

/* obstacles.sql */
extern const char too_few_sql[];
extern const char written_expressions_sql[];
extern const char on_target_sql[];
extern const char money_columns_sql[];
extern const char settings_of_worker_sql[];
extern const char default_privileges_sql[];
extern const char other_readers_sql[];

/* opening.sql */
extern const char reached_sql[];
extern const char slow_clock_sql[];
extern const char read_only_sql[];

/* plproxy.sql */
extern const char plproxy_sql[];

/* records.sql */
extern const char move_record_sql[];
extern const char split_record_sql[];

/* replicable.sql */
extern const char not_replicable_sql[];
extern const char without_equality_sql[];
extern const char hashed_enums_sql[];

/* rights.sql */
extern const char owners_sql[];
extern const char not_as_owner_sql[];
extern const char table_owners_sql[];
extern const char session_problems_sql[];
extern const char rights_to_read_sql[];
extern const char subscription_rights_sql[];

/* rows.sql */
extern const char foreign_keys_sql[];
extern const char lacking_sql[];
extern const char copied_tables_sql[];

/* sessions.sql */
extern const char lock_holders_sql[];
extern const char session_settings_sql[];

/* since.sql */
extern const char sources_sql[];

/* split.sql */
extern const char split_sql[];
extern const char after_promotion_sql[];

/* split_obstacles.sql */
extern const char on_old_server_sql[];
extern const char before_closing_sql[];
extern const char on_standby_sql[];
extern const char without_standby_sql[];
extern const char at_promotion_sql[];
