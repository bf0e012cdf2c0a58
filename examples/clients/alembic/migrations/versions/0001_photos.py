import sqlalchemy as sa
from alembic import op

revision = "0001"
down_revision = None


def upgrade():
    op.execute("CREATE EXTENSION IF NOT EXISTS snowflake")
    op.execute("CREATE SEQUENCE photos_id_seq")
    op.create_table(
        "photos",
        sa.Column("id", sa.BigInteger(), nullable=False,
                  server_default=sa.text("snowflake_next_id(0, 'photos_id_seq'::regclass)")),
        sa.Column("caption", sa.Text(), nullable=False),
        sa.PrimaryKeyConstraint("id"),
    )
    op.execute("ALTER SEQUENCE photos_id_seq OWNED BY photos.id")


def downgrade():
    op.drop_table("photos")
