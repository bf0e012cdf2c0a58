from django.db import migrations, models


class Migration(migrations.Migration):
    """What shard.sql has made. It is never run."""

    operations = [
        migrations.CreateModel("User", [
            ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID")),
            ("name", models.TextField()),
        ], {"db_table": "users"}),
        migrations.CreateModel("Name", [
            ("name", models.TextField(primary_key=True, serialize=False)),
            ("user_id", models.BigIntegerField()),
        ], {"db_table": "names"}),
        migrations.CreateModel("Photo", [
            ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID")),
            ("user", models.ForeignKey("django_photos.user", models.CASCADE)),
            ("caption", models.TextField()),
        ], {"db_table": "photos"}),
    ]
