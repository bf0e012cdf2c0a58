GRANT UPDATE ON insta5.users TO web;
REVOKE INSERT ON insta5.posts FROM web;
-- carried over if
SELECT has_table_privilege('web', 'insta5.users', 'UPDATE') AND NOT has_table_privilege('web', 'insta5.posts', 'INSERT');
