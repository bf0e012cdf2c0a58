from alembic import op

revision = "0003"
down_revision = "0002"


def upgrade():
    op.execute("UPDATE photos SET slug = lower(caption) WHERE slug IS NULL")
