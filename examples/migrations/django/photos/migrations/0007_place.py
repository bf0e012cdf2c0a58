from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [("photos", "0006_index")]
    operations = [migrations.AddField("Album", "place", models.TextField(null=True))]
