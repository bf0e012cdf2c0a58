from django.db import models
from django.db.models import BooleanField, Func


class Photo(models.Model):
    """The ID is a BigAutoField: Django leaves it out of INSERT, and reads it back by RETURNING."""

    caption = models.TextField()


class MadeBetween(Func):
    """In filter(): MadeBetween("id", from_time, to_time)."""

    function = "snowflake_between"
    output_field = BooleanField()
