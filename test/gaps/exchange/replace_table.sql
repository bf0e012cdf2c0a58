ALTER TABLE @schema@.@table@ RENAME TO away;
CREATE TABLE @schema@.@table@ (LIKE @schema@.away INCLUDING ALL);
CALL mallory.plant_on('@schema@.@table@');
-- at the next gap
DROP TABLE @schema@.@table@ CASCADE;
ALTER TABLE @schema@.away RENAME TO @table@;
