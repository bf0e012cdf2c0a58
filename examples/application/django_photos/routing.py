"""The shard of an object for Django: each shard is one of the DATABASES, and no query has a default."""

import time

from django.db import InternalError, transaction

from route import shard_of_id, shard_of_name


def alias_of(row_id):
    return f"shard{shard_of_id(row_id)}"


class ShardRouter:
    def db_for_read(self, model, instance=None, **hints):
        """Of user.photo_set and photo.user: the shard of the object that has them."""
        return instance._state.db if instance is not None and instance._state.db else None

    def db_for_write(self, model, instance=None, **hints):
        """Of save(): a new photo goes to its user, a new user to the name. create() tells no instance."""
        if instance is None or instance._state.db:
            return instance and instance._state.db
        if hasattr(instance, "user_id"):
            return alias_of(instance.user_id)
        return f"shard{shard_of_name(instance.name)}"

    def allow_relation(self, one, other, **hints):
        return one._state.db == other._state.db


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
