#!/usr/bin/env python3
"""A table whose DEFAULT makes IDs, by Alembic's migrations.

PGHOST, PGDATABASE and the like name an empty database. If anything does not hold, the program says
what, and exits with 1.
"""

import logging
import os
import sys

import alembic
from alembic import command
from alembic.autogenerate import compare_metadata
from alembic.config import Config
from alembic.migration import MigrationContext
from models import Base, Photo
from sqlalchemy import BigInteger, Column, MetaData, Table, Text, create_engine, text
from sqlalchemy.orm import Session


def check(holds, problem):
    if not holds:
        sys.exit(f"alembic: {problem}")


def table_without_cast():
    """The metadata of the same table; only the text of the DEFAULT is shorter."""
    metadata = MetaData()
    default = text("snowflake_next_id(0, 'photos_id_seq')")
    Table("photos", metadata, Column("id", BigInteger, primary_key=True, server_default=default),
          Column("caption", Text, nullable=False))
    return metadata


def differences(engine, metadata):
    """What "alembic revision --autogenerate" would write."""
    with engine.connect() as connection:
        context = MigrationContext.configure(connection, opts={"compare_server_default": True})
        return compare_metadata(context, metadata)


def main():
    logging.getLogger("alembic").setLevel(logging.ERROR)
    config = Config()
    config.set_main_option("script_location", os.path.join(os.path.dirname(os.path.abspath(__file__)), "migrations"))
    command.upgrade(config, "head")
    command.downgrade(config, "base")
    command.upgrade(config, "head")

    engine = create_engine("postgresql+psycopg2://")
    check(not differences(engine, Base.metadata), f"the migration and the model differ: {differences(engine, Base.metadata)}")
    check(differences(engine, table_without_cast()),
          "the DEFAULT without ::regclass is the same as the server's text: docs/clients/python.md says that it is not")

    with Session(engine) as session:
        photos = [Photo(caption=f"photo {i}") for i in range(40)]
        session.add_all(photos)
        session.commit()
        ids = [photo.id for photo in photos]
    check(ids == sorted(set(ids)), f"the IDs do not increase: {ids}")
    check(ids[0] >= 1 << 53, f"{ids[0]} is a position or a counter, and no ID")
    print(f"alembic {alembic.__version__}: {len(ids)} IDs in a migrated table; the last one is {ids[-1]}.")


main()
