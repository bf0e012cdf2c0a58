from sqlalchemy import BigInteger, Column, Index, Text, text
from sqlalchemy.orm import declarative_base

Base = declarative_base()


class Photo(Base):
    __tablename__ = "photos"
    id = Column(BigInteger, primary_key=True, server_default=text("next_id()"))
    user_id = Column(BigInteger, nullable=False)
    caption = Column(Text, nullable=False)
    slug = Column(Text, nullable=False)
    __table_args__ = (Index("photos_user", "user_id"),)


class Album(Base):
    __tablename__ = "albums"
    id = Column(BigInteger, primary_key=True, server_default=text("next_id()"))
    title = Column(Text, nullable=False)
    place = Column(Text)
