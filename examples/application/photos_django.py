#!/usr/bin/env python3
"""The service with Django's ORM. The verbs are those of photos.py.

    photos_django.py sign-up NAME | post NAME CAPTION | timeline NAME | photo ID | like NAME PHOTO_ID
                     | load SECONDS [THREADS] | sqlmigrate MIGRATION | migrate

PGBOUNCER_HOST and PGBOUNCER_PORT are PgBouncer's. migrate makes the tables of Django's own apps in the database ACCOUNTS.
"""

import os
import sys

import django
from django.core.management import call_command
from django.db import IntegrityError, connections

os.environ["DJANGO_SETTINGS_MODULE"] = "django_settings"
django.setup()
from django_photos.models import Name, Photo, User  # noqa: E402, after setup()
from django_photos.routing import alias_of, in_transaction  # noqa: E402
from load import load  # noqa: E402
from route import shard_of_name  # noqa: E402


def alias_of_name(name):
    return f"shard{shard_of_name(name)}"


def sign_up(name):
    def work():
        user = User(name=name)
        user.save()
        Name.objects.using(user._state.db).create(name=name, user_id=user.id)
        return user.id
    try:
        return in_transaction(alias_of_name(name), work)
    except IntegrityError:
        sys.exit(f"the name {name} is taken")


def find_user(name):
    found = Name.objects.using(alias_of_name(name)).filter(name=name).first()
    return found.user_id if found else sys.exit(f"there is no user {name}")


def post(user_id, caption):
    def work():
        new = Photo(user_id=user_id, caption=caption)
        new.save()
        return new.id
    return in_transaction(alias_of(user_id), work)


def timeline(user_id, before=2**63 - 1, limit=20):
    photos = Photo.objects.using(alias_of(user_id)).filter(user_id=user_id, id__lt=before).order_by("-id")
    return list(photos.values_list("id", "caption")[:limit])


def photo(photo_id):
    """The user comes by a relation, from the same shard."""
    found = Photo.objects.using(alias_of(photo_id)).get(id=photo_id)
    with connections[alias_of(photo_id)].cursor() as cursor:
        cursor.execute("SELECT count(*) FROM likes WHERE photo_id = %s", (photo_id,))
        (likes,) = cursor.fetchone()
    return found.id, found.user.id, found.caption, likes


def like(user_id, photo_id):
    """Django 3.2 has no key of two columns."""
    def work():
        with connections[alias_of(photo_id)].cursor() as cursor:
            cursor.execute("INSERT INTO likes (photo_id, user_id) VALUES (%s, %s) ON CONFLICT DO NOTHING", (photo_id, user_id))
            if cursor.rowcount:
                cursor.execute("INSERT INTO outbox (user_id, photo_id) VALUES (%s, %s)", (user_id, photo_id))
    in_transaction(alias_of(photo_id), work)


def main(verb, *words):
    if verb == "sign-up":
        print(sign_up(words[0]))
    elif verb == "post":
        print(post(find_user(words[0]), words[1]))
    elif verb == "timeline":
        for row in timeline(find_user(words[0])):
            print(*row)
    elif verb == "photo":
        print(*photo(int(words[0])))
    elif verb == "like":
        like(find_user(words[0]), int(words[1]))
    elif verb == "load":
        load("dj", sign_up, post, timeline, like, *words)
    elif verb == "sqlmigrate":
        call_command("sqlmigrate", "django_photos", words[0], database="shard0", no_color=True)
    elif verb == "migrate":
        call_command("migrate", database="default", verbosity=0)
    else:
        sys.exit(__doc__)


if __name__ == "__main__":
    main(*sys.argv[1:] or ["help"])
