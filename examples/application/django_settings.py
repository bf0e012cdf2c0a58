"""A database for each shard. "default" has the tables of Django's own apps, and none of the shards: a query without a shard is
an error."""

import os

from route import SHARDS

SECRET_KEY = "no secret: nothing is signed"
INSTALLED_APPS = ["django.contrib.contenttypes", "django.contrib.auth", "django.contrib.sessions", "django_photos"]
DEFAULT_AUTO_FIELD = "django.db.models.BigAutoField"
USE_TZ = True
DATABASE_ROUTERS = ["django_photos.routing.ShardRouter"]


def database(name):
    return {
        "ENGINE": "django.db.backends.postgresql",
        "HOST": os.environ.get("PGBOUNCER_HOST", "/tmp"),
        "PORT": os.environ.get("PGBOUNCER_PORT", "6432"),
        "NAME": name,
        # A cursor would stay in one of PgBouncer's server connections.
        "DISABLE_SERVER_SIDE_CURSORS": True,
        "CONN_MAX_AGE": None,
    }


DATABASES = {f"shard{shard}": database(f"shard{shard}") for shard in range(SHARDS)}
DATABASES["default"] = database(os.environ.get("ACCOUNTS", "accounts"))
