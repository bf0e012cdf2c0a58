TRUNCATE insta5."Old Log" RESTART IDENTITY;
-- carried over if
SELECT count(*) = 0 FROM insta5."Old Log";
