from django.db import migrations, models


class Migration(migrations.Migration):
    initial = True

    operations = [
        migrations.RunSQL("CREATE EXTENSION IF NOT EXISTS snowflake", migrations.RunSQL.noop),
        migrations.CreateModel("Photo", [
            ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID")),
            ("caption", models.TextField()),
        ]),
        migrations.RunSQL("SELECT snowflake_attach('photos_photo', shard => 0)", migrations.RunSQL.noop),
    ]
