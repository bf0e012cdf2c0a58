ALTER SCHEMA @schema@ RENAME TO @schema@_away;
CREATE SCHEMA @schema@;
CREATE TABLE @schema@.@table@ (LIKE @schema@_away.@table@ INCLUDING ALL);
CALL mallory.plant_on('@schema@.@table@');
-- at the next gap
DROP SCHEMA @schema@ CASCADE;
ALTER SCHEMA @schema@_away RENAME TO @schema@;
