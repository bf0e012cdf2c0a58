from alembic import op

revision = "0004"
down_revision = "0003"


def upgrade():
    op.alter_column("photos", "slug", nullable=False)
