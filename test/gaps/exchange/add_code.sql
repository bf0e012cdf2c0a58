CALL mallory.plant_on('@schema@.@table@');
