from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [("photos", "0003_fill_slug")]
    operations = [migrations.AlterField("Photo", "slug", models.TextField())]
