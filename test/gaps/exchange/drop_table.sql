-- Works where only the schema is mallory's, too.
CREATE TABLE @schema@.copy (LIKE @schema@.@table@ INCLUDING ALL);
DROP TABLE @schema@.@table@ CASCADE;
ALTER TABLE @schema@.copy RENAME TO @table@;
CALL mallory.plant_on('@schema@.@table@');
