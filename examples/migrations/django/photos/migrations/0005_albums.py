from django.db import migrations, models

import photos.fields


class Migration(migrations.Migration):
    dependencies = [("photos", "0004_slug_not_null")]
    operations = [
        migrations.CreateModel("Album", [
            ("id", photos.fields.ShardKey(auto_created=True, primary_key=True, serialize=False, verbose_name="ID")),
            ("title", models.TextField()),
            ("photos", models.ManyToManyField("photos.Photo")),
        ], {"db_table": "albums"}),
    ]
