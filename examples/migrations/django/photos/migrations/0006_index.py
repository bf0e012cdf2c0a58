from django.contrib.postgres.operations import AddIndexConcurrently
from django.db import migrations, models


class Migration(migrations.Migration):
    atomic = False
    dependencies = [("photos", "0005_albums")]
    operations = [AddIndexConcurrently("Photo", models.Index(fields=["user_id"], name="photos_user"))]
