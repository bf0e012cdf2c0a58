"""Alembic's command in each shard of shards.json, or in some: alembic -x shards=20,21 stamp head."""

import json
import os
import sys

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))

from alembic import context
from sqlalchemy import create_engine
from sqlalchemy.engine import URL

from models import Base


def url_of(shard):
    """Only the shard's schema in the search_path: an alembic_version of another schema is not found."""
    options = f"-c search_path={shard['schema']} -c lock_timeout=2s"
    return URL.create("postgresql+psycopg2", host=shard["host"], port=int(shard["port"]), database=shard["dbname"],
                      query={"options": options})


with open("shards.json") as file:
    shards = json.load(file)
only = context.get_x_argument(as_dictionary=True).get("shards")
for shard in shards:
    number = str(shard["shard"])
    if only and number not in only.split(","):
        continue
    with create_engine(url_of(shard)).connect() as connection:
        context.configure(connection=connection, target_metadata=Base.metadata, compare_server_default=True,
                          transaction_per_migration=True)
        try:
            with context.begin_transaction():
                context.run_migrations()
        except Exception as error:
            sys.exit(f"shard {number}: {error}")
