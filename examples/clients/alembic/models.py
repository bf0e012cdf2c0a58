from sqlalchemy import BigInteger, Column, Text, text
from sqlalchemy.orm import declarative_base

Base = declarative_base()


class Photo(Base):
    __tablename__ = "photos"
    id = Column(BigInteger, primary_key=True, server_default=text("snowflake_next_id(0, 'photos_id_seq'::regclass)"))
    caption = Column(Text, nullable=False)
