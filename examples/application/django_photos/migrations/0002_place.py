from django.db import migrations, models


class Migration(migrations.Migration):
    """sqlmigrate prints it, and snowflake-shard runs it in every shard, in a transaction of its own:
    without atomic = False, sqlmigrate would print a BEGIN, too."""

    atomic = False
    dependencies = [("django_photos", "0001_initial")]
    operations = [migrations.AddField("Photo", "place", models.TextField(null=True))]
