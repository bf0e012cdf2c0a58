REVOKE EXECUTE ON FUNCTION insta5.other_id() FROM PUBLIC;
GRANT EXECUTE ON FUNCTION insta5.other_id() TO web;
-- carried over if
SELECT NOT has_function_privilege('other', 'insta5.other_id()', 'EXECUTE') AND has_function_privilege('web', 'insta5.other_id()', 'EXECUTE');
