COMMENT ON TABLE insta5.users IS 'changed';
-- carried over if
SELECT obj_description('insta5.users'::regclass) = 'changed';
