"""A database for each shard. "default" is empty, so that a query without a shard is an error."""

import os

from route import SHARDS

SECRET_KEY = "no secret: nothing is signed"
INSTALLED_APPS = ["django_photos"]
DEFAULT_AUTO_FIELD = "django.db.models.BigAutoField"
USE_TZ = True
DATABASE_ROUTERS = ["django_photos.routing.ShardRouter"]
DATABASES = {"default": {}}
for shard in range(SHARDS):
    DATABASES[f"shard{shard}"] = {
        "ENGINE": "django.db.backends.postgresql",
        "HOST": os.environ.get("PGBOUNCER_HOST", "/tmp"),
        "PORT": os.environ.get("PGBOUNCER_PORT", "6432"),
        "NAME": f"shard{shard}",
        # A cursor would stay in one of PgBouncer's server connections.
        "DISABLE_SERVER_SIDE_CURSORS": True,
        "CONN_MAX_AGE": None,
    }
