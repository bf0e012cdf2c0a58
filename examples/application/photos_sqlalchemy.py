#!/usr/bin/env python3
"""The service with SQLAlchemy's ORM: a Session belongs to one shard. The verbs are those of photos.py.

    photos_sqlalchemy.py sign-up NAME | post NAME CAPTION | timeline NAME | photo ID | like NAME PHOTO_ID
                         | load SECONDS [THREADS]

PGBOUNCER is the connection string of PgBouncer, without a database.
"""

import os
import sys
import time
from functools import lru_cache

import psycopg2
from sqlalchemy import BigInteger, Column, FetchedValue, Text, create_engine, func, select
from sqlalchemy.dialects.postgresql import insert
from sqlalchemy.exc import DBAPIError, IntegrityError
from sqlalchemy.orm import Session, declarative_base
from sqlalchemy.pool import NullPool

from load import load
from route import shard_of_id, shard_of_name

Base = declarative_base()


class User(Base):
    __tablename__ = "users"
    id = Column(BigInteger, primary_key=True, server_default=FetchedValue())
    name = Column(Text, nullable=False)


class Name(Base):
    __tablename__ = "names"
    name = Column(Text, primary_key=True)
    user_id = Column(BigInteger, nullable=False)


class Photo(Base):
    __tablename__ = "photos"
    id = Column(BigInteger, primary_key=True, server_default=FetchedValue())
    user_id = Column(BigInteger, nullable=False)
    caption = Column(Text, nullable=False)


class Like(Base):
    __tablename__ = "likes"
    photo_id = Column(BigInteger, primary_key=True)
    user_id = Column(BigInteger, primary_key=True)


class Outbox(Base):
    __tablename__ = "outbox"
    id = Column(BigInteger, primary_key=True, server_default=FetchedValue())
    user_id = Column(BigInteger, nullable=False)
    photo_id = Column(BigInteger, nullable=False)


@lru_cache(maxsize=None)
def engine(shard):
    """PgBouncer has the pool."""
    dsn = f"{os.environ.get('PGBOUNCER', 'host=/tmp port=6432')} dbname=shard{shard}"
    return create_engine("postgresql+psycopg2://", creator=lambda: psycopg2.connect(dsn), poolclass=NullPool, future=True)


def transaction(shard, work, patience=30):
    """Returns work(session), done in one transaction; again if the shard has moved: SQLSTATE 25006."""
    deadline = time.monotonic() + patience
    while True:
        try:
            with Session(engine(shard), expire_on_commit=False, future=True) as session, session.begin():
                return work(session)
        except DBAPIError as error:
            if getattr(error.orig, "pgcode", None) != "25006" or time.monotonic() > deadline:
                raise
        time.sleep(0.05)


def sign_up(name):
    def work(session):
        user = User(name=name)
        session.add(user)
        session.flush()
        session.add(Name(name=name, user_id=user.id))
        return user.id
    try:
        return transaction(shard_of_name(name), work)
    except IntegrityError as error:
        sys.exit(f"the name {name} is taken" if error.orig.pgcode == "23505" else str(error))


def find_user(name):
    found = transaction(shard_of_name(name), lambda session: session.get(Name, name))
    return found.user_id if found else sys.exit(f"there is no user {name}")


def post(user_id, caption):
    def work(session):
        photo = Photo(user_id=user_id, caption=caption)
        session.add(photo)
        return photo
    return transaction(shard_of_id(user_id), work).id


def timeline(user_id, before=2**63 - 1, limit=20):
    query = select(Photo).where(Photo.user_id == user_id, Photo.id < before).order_by(Photo.id.desc()).limit(limit)
    photos = transaction(shard_of_id(user_id), lambda session: session.scalars(query).all())
    return [(photo.id, photo.caption) for photo in photos]


def photo_row(photo_id):
    likes = select(func.count()).where(Like.photo_id == Photo.id).scalar_subquery()
    query = select(Photo.id, Photo.user_id, Photo.caption, likes).where(Photo.id == photo_id)
    return transaction(shard_of_id(photo_id), lambda session: session.execute(query).one())


def like(user_id, photo_id):
    def work(session):
        done = session.execute(insert(Like).values(photo_id=photo_id, user_id=user_id).on_conflict_do_nothing())
        if done.rowcount:
            session.add(Outbox(user_id=user_id, photo_id=photo_id))
    transaction(shard_of_id(photo_id), work)


def main(verb, *words):
    if verb == "sign-up":
        print(sign_up(words[0]))
    elif verb == "post":
        print(post(find_user(words[0]), words[1]))
    elif verb == "timeline":
        for row in timeline(find_user(words[0])):
            print(*row)
    elif verb == "photo":
        print(*photo_row(int(words[0])))
    elif verb == "like":
        like(find_user(words[0]), int(words[1]))
    elif verb == "load":
        load("sa", sign_up, post, timeline, like, *words)
    else:
        sys.exit(__doc__)


if __name__ == "__main__":
    main(*sys.argv[1:] or ["help"])
