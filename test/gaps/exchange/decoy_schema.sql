ALTER SCHEMA @schema@ RENAME TO away;
CREATE SCHEMA @schema@;
CREATE TABLE @schema@.@table@ (LIKE away.@table@ INCLUDING ALL);
CALL mallory.plant_on('@schema@.@table@');
-- at the next gap
DROP SCHEMA @schema@ CASCADE;
ALTER SCHEMA away RENAME TO @schema@;
