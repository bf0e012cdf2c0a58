from alembic import op

revision = "0006"
down_revision = "0005"


def upgrade():
    with op.get_context().autocommit_block():
        op.create_index("photos_user", "photos", ["user_id"], postgresql_concurrently=True)
