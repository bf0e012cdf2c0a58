#!/usr/bin/env python3
"""IDs from a column's DEFAULT in SQLAlchemy's ORM.

PGHOST, PGDATABASE and the like name an empty database. If anything does not hold, the program says
what, and exits with 1.
"""

import json
import sys
from datetime import datetime, timedelta, timezone

import sqlalchemy
from sqlalchemy import BigInteger, Boolean, Column, ForeignKey, Sequence, Text, create_engine, func, select, text
from sqlalchemy.orm import Session, declarative_base, relationship

Base = declarative_base()


# create_all() makes them before the tables. No column draws from them by itself: its DEFAULT does.
Sequence("photos_id_seq", metadata=Base.metadata)
Sequence("likes_id_seq", metadata=Base.metadata)


class Photo(Base):
    __tablename__ = "photos"
    id = Column(BigInteger, primary_key=True, server_default=text("snowflake_next_id(0, 'photos_id_seq'::regclass)"))
    caption = Column(Text, nullable=False)


class Like(Base):
    __tablename__ = "likes"
    id = Column(BigInteger, primary_key=True, server_default=text("snowflake_next_id(0, 'likes_id_seq'::regclass)"))
    photo_id = Column(BigInteger, ForeignKey(Photo.id), nullable=False)
    photo = relationship(Photo)


class Wrong(Base):
    """Sequence() in a column makes SQLAlchemy call nextval(): the DEFAULT is not asked for an ID."""

    __tablename__ = "wrong"
    id = Column(BigInteger, Sequence("wrong_id_seq"), primary_key=True,
                server_default=text("snowflake_next_id(0, 'likes_id_seq'::regclass)"))


def check(holds, problem):
    if not holds:
        sys.exit(f"sqlalchemy: {problem}")


def insert(session, captions):
    """Adds objects, and returns their IDs, which flush() reads back by RETURNING."""
    photos = [Photo(caption=caption) for caption in captions]
    session.add_all(photos)
    session.flush()
    return [photo.id for photo in photos]


def pages(session, size):
    """All IDs, page by page: each page begins after the last ID of the page before it."""
    last = 0
    while page := session.scalars(select(Photo.id).where(Photo.id > last).order_by(Photo.id).limit(size)).all():
        last = page[-1]
        yield page


def made_between(session, start, end):
    between = func.snowflake_between(Photo.id, start, end, type_=Boolean)
    return session.scalars(select(Photo.id).where(between).order_by(Photo.id)).all()


def main():
    engine = create_engine("postgresql+psycopg2://")
    with engine.begin() as connection:
        connection.execute(text("CREATE EXTENSION IF NOT EXISTS snowflake"))
        Base.metadata.create_all(connection)

    with Session(engine) as session:
        ids = insert(session, [f"photo {i}" for i in range(25)])
        check(ids == sorted(set(ids)), f"the IDs do not increase: {ids}")
        check(ids[0] >= 1 << 53, f"{ids[0]} is a position or a counter, and no ID")
        like = Like(photo=session.get(Photo, ids[0]))
        session.add(like)
        session.flush()
        check(like.photo_id == ids[0], f"the like of {ids[0]} is one of {like.photo_id}")
        paged = list(pages(session, 10))
        check([len(page) for page in paged] == [10, 10, 5], f"the pages are {paged}")
        check(sum(paged, []) == ids, "the pages do not have all IDs in order")

        # A back-dated row has the ID of its time.
        leap_day = datetime(2024, 2, 29, 12, tzinfo=timezone.utc)
        old = Photo(id=func.snowflake_encode(leap_day, 0, 0), caption="old")
        session.add(old)
        session.flush()
        now, minute = datetime.now(timezone.utc), timedelta(minutes=1)
        check(made_between(session, now - minute, now + minute) == ids, "the last minute has other IDs")
        since = session.scalars(select(Photo.id).where(Photo.id >= func.snowflake_min_id(now - minute)).order_by(Photo.id)).all()
        check(since == ids, "the time since a minute ago has other IDs")
        check(made_between(session, leap_day, leap_day + minute) == [old.id], "2024-02-29 12:00 has other IDs")

        # A row comes from a server whose clock is a second fast. Then the sequence is reset.
        imported = Photo(id=func.snowflake_encode(datetime.now(timezone.utc) + timedelta(seconds=1), 0, 0), caption="imported")
        session.add(imported)
        session.flush()
        session.execute(select(func.setval("photos_id_seq", func.max(Photo.id))))
        more = insert(session, ["after the reset"] * 10)
        check(more == sorted(set(more)) and more[0] > imported.id, f"after {imported.id} and a reset came {more}")

        wrong = Wrong()
        session.add(wrong)
        session.flush()
        check(wrong.id < 1 << 53, f"Sequence() made the ID {wrong.id}: docs/clients/python.md says that it does not")

        # In JSON an ID is a string: JavaScript rounds numbers of this size.
        sent = json.dumps({"id": str(more[-1])})
        photo = session.get(Photo, int(json.loads(sent)["id"]))
        check(photo is not None and photo.id == more[-1], f"{sent} is no photo")
        session.commit()

    print(f"sqlalchemy {sqlalchemy.__version__}: {len(ids) + len(more)} IDs by the ORM; the last one is {more[-1]}.")


main()
