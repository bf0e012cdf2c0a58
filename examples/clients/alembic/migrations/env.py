"""The least that Alembic wants. PGHOST and the like name the server."""

from alembic import context
from models import Base
from sqlalchemy import create_engine

with create_engine("postgresql+psycopg2://").connect() as connection:
    context.configure(connection=connection, target_metadata=Base.metadata, compare_server_default=True)
    with context.begin_transaction():
        context.run_migrations()
