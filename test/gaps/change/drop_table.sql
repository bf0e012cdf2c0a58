DROP TABLE insta5."Old Log";
-- carried over if
SELECT to_regclass('insta5."Old Log"') IS NULL;
