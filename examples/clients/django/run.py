#!/usr/bin/env python3
"""IDs from a column's DEFAULT in Django's ORM; the application is in photos/.

PGHOST, PGDATABASE and the like name an empty database. If anything does not hold, the program says
what, and exits with 1.
"""

import io
import json
import os
import sys
import tempfile
from datetime import datetime, timedelta, timezone

import django
from django.core.management import call_command
from django.db import IntegrityError, connection, models
from django.db.models import Func, Value

os.environ["DJANGO_SETTINGS_MODULE"] = "settings"
django.setup()
from photos.models import MadeBetween, Photo  # noqa: E402, after setup()


def check(holds, problem):
    if not holds:
        sys.exit(f"django: {problem}")


def pages(size):
    """All IDs, page by page: each page begins after the last ID of the page before it."""
    last = 0
    while page := list(Photo.objects.filter(id__gt=last).order_by("id").values_list("id", flat=True)[:size]):
        last = page[-1]
        yield page


def made_between(start, end):
    return list(Photo.objects.filter(MadeBetween("id", Value(start), Value(end))).order_by("id").values_list("id", flat=True))


def id_of(time):
    return Func(Value(time), Value(0), Value(0), function="snowflake_encode")


def check_later(earlier, how):
    """Objects that are made now have IDs above an earlier one."""
    ids = [Photo.objects.create(caption=how).id for _ in range(5)]
    ids += [photo.id for photo in Photo.objects.bulk_create([Photo(caption=how) for _ in range(5)])]
    check(ids == sorted(set(ids)) and ids[0] > earlier, f"after {earlier} and {how} came {ids}")
    return ids


def import_photo():
    """A row from a server whose clock is a second fast: its ID is above the sequence."""
    Photo.objects.create(id=id_of(datetime.now(timezone.utc) + timedelta(seconds=1)), caption="imported")
    return Photo.objects.latest("id").id


def inspect():
    """inspectdb takes the ID for a number of the application, and create() sends NULL for it."""
    written = io.StringIO()
    call_command("inspectdb", "photos_photo", stdout=written)
    check("    id = models.BigIntegerField(primary_key=True)\n" in written.getvalue(),
          f"docs/clients/python.md names another field than inspectdb:\n{written.getvalue()}")

    class Inspected(models.Model):
        id = models.BigIntegerField(primary_key=True)
        caption = models.TextField()

        class Meta:
            app_label = "photos"
            managed = False
            db_table = "photos_photo"

    try:
        Inspected.objects.create(caption="without an ID")
    except IntegrityError as error:
        check('null value in column "id"' in str(error), error)
    else:
        check(False, "a BigIntegerField leaves the ID to the DEFAULT: docs/clients/python.md says that it does not")


def main():
    call_command("migrate", verbosity=0)
    inspect()

    ids = check_later(0, "migrate") + check_later(0, "migrate") + check_later(0, "migrate")
    check(ids[0] >= 1 << 53, f"{ids[0]} is a position or a counter, and no ID")
    paged = list(pages(12))
    check([len(page) for page in paged] == [12, 12, 6], f"the pages are {paged}")
    check(sum(paged, []) == ids, "the pages do not have all IDs in order")

    # A back-dated row has the ID of its time.
    leap_day = datetime(2024, 2, 29, 12, tzinfo=timezone.utc)
    Photo.objects.create(id=id_of(leap_day), caption="old")
    now, minute = datetime.now(timezone.utc), timedelta(minutes=1)
    check(made_between(now - minute, now + minute) == ids, "the last minute has other IDs")
    old = Photo.objects.get(caption="old").id
    check(made_between(leap_day, leap_day + minute) == [old], "2024-02-29 12:00 has other IDs")

    imported = import_photo()
    statements = io.StringIO()
    call_command("sqlsequencereset", "photos", no_color=True, stdout=statements)
    with connection.cursor() as cursor:
        cursor.execute(statements.getvalue())
    check_later(imported, "sqlsequencereset")

    # loaddata resets the sequence by itself.
    imported = import_photo()
    with tempfile.TemporaryDirectory() as folder:
        call_command("dumpdata", "photos", output=f"{folder}/photos.json", verbosity=0)
        call_command("flush", interactive=False, verbosity=0)
        call_command("loaddata", f"{folder}/photos.json", verbosity=0)
    more = check_later(imported, "loaddata")

    # In JSON an ID is a string: JavaScript rounds numbers of this size.
    sent = json.dumps({"id": str(more[-1])})
    check(Photo.objects.get(pk=json.loads(sent)["id"]).id == more[-1], f"{sent} is another photo")

    print(f"django {django.__version__}: {Photo.objects.count()} photos; the last ID is {more[-1]}.")


main()
