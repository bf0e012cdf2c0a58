ALTER SCHEMA @schema@ RENAME TO @schema@_away;
-- at the next gap
ALTER SCHEMA @schema@_away RENAME TO @schema@;
