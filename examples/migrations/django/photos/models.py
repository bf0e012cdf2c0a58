from django.db import models


class Photo(models.Model):
    user_id = models.BigIntegerField()
    caption = models.TextField()
    slug = models.TextField()

    class Meta:
        db_table = "photos"
        indexes = [models.Index(fields=["user_id"], name="photos_user")]


class Album(models.Model):
    title = models.TextField()
    place = models.TextField(null=True)
    photos = models.ManyToManyField(Photo)

    class Meta:
        db_table = "albums"
