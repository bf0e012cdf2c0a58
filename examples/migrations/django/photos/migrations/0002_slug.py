from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [("photos", "0001_photos")]
    operations = [migrations.AddField("Photo", "slug", models.TextField(null=True))]
