ALTER SCHEMA @schema@ RENAME TO away;
-- at the next gap
ALTER SCHEMA away RENAME TO @schema@;
