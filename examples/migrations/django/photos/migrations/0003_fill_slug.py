from django.db import migrations


class Migration(migrations.Migration):
    dependencies = [("photos", "0002_slug")]
    operations = [migrations.RunSQL("UPDATE photos SET slug = lower(caption) WHERE slug IS NULL", elidable=True)]
