from django.db import models


class User(models.Model):
    name = models.TextField()

    class Meta:
        db_table = "users"


class Name(models.Model):
    name = models.TextField(primary_key=True)
    user_id = models.BigIntegerField()

    class Meta:
        db_table = "names"


class Photo(models.Model):
    user = models.ForeignKey(User, models.CASCADE)
    caption = models.TextField()
    place = models.TextField(null=True)

    class Meta:
        db_table = "photos"
