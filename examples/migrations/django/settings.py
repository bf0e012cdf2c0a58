"""A database for each shard of shards.json. "default" is the template: sqlmigrate and squashmigrations want one."""

import json

SECRET_KEY = "no secret: nothing is signed"
INSTALLED_APPS = ["photos"]
DEFAULT_AUTO_FIELD = "photos.fields.ShardKey"
USE_TZ = True


def database(shard):
    return {
        "ENGINE": "django.db.backends.postgresql",
        "HOST": shard["host"],
        "PORT": shard["port"],
        "NAME": shard["dbname"],
        "OPTIONS": {"options": f"-c search_path={shard['schema']}"},
    }


with open("shards.json") as file:
    DATABASES = {f"shard{shard['shard']}": database(shard) for shard in json.load(file)}
DATABASES["default"] = DATABASES["shard0"]
