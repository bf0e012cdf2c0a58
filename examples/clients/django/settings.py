"""The least that Django wants. PGHOST and the like name the server."""

import os

SECRET_KEY = "no secret: nothing is signed"
INSTALLED_APPS = ["photos"]
DATABASES = {"default": {"ENGINE": "django.db.backends.postgresql", "NAME": os.environ.get("PGDATABASE", "postgres")}}
DEFAULT_AUTO_FIELD = "django.db.models.BigAutoField"
USE_TZ = True
