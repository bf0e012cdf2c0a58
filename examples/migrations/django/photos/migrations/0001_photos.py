from django.db import migrations, models

import photos.fields


class Migration(migrations.Migration):
    operations = [
        migrations.CreateModel("Photo", [
            ("id", photos.fields.ShardKey(auto_created=True, primary_key=True, serialize=False, verbose_name="ID")),
            ("user_id", models.BigIntegerField()),
            ("caption", models.TextField()),
        ], {"db_table": "photos"}),
    ]
