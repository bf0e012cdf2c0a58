import sqlalchemy as sa
from alembic import op

revision = "0001"
down_revision = None


def upgrade():
    op.create_table(
        "photos",
        sa.Column("id", sa.BigInteger(), nullable=False, server_default=sa.text("next_id()")),
        sa.Column("user_id", sa.BigInteger(), nullable=False),
        sa.Column("caption", sa.Text(), nullable=False),
        sa.PrimaryKeyConstraint("id"),
    )
