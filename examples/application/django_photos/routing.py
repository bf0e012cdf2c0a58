"""The shard of an object for Django: each shard is one of the DATABASES, and no query of a sharded model has a default."""

import time

from django.db import InternalError, transaction

from route import shard_of_id, shard_of_name


def alias_of(row_id):
    return f"shard{shard_of_id(row_id)}"


def is_sharded(model):
    return model._meta.app_label == "django_photos"


class ShardRouter:
    """Of the models of this app alone: those of others, such as django.contrib.auth, are in "default"."""

    def db_for_read(self, model, instance=None, **hints):
        """Of user.photo_set and photo.user: the shard of the object that has them."""
        return instance._state.db if is_sharded(model) and instance is not None else None

    def db_for_write(self, model, instance=None, **hints):
        """Of save(): a new photo goes to its user, a new user to the name. create() tells no instance."""
        if not is_sharded(model) or instance is None or instance._state.db:
            return self.db_for_read(model, instance)
        if hasattr(instance, "user_id"):
            return alias_of(instance.user_id)
        return f"shard{shard_of_name(instance.name)}"

    def allow_relation(self, one, other, **hints):
        return one._state.db == other._state.db if is_sharded(one) or is_sharded(other) else None

    def allow_migrate(self, db, app_label, **hints):
        return (app_label == "django_photos") == db.startswith("shard")


def in_transaction(alias, work, patience=30):
    """Returns work(), done in one transaction; again if the shard has moved: SQLSTATE 25006."""
    deadline = time.monotonic() + patience
    while True:
        try:
            with transaction.atomic(using=alias):
                return work()
        except InternalError as error:
            if getattr(error.__cause__, "pgcode", None) != "25006" or time.monotonic() > deadline:
                raise
        time.sleep(0.05)
