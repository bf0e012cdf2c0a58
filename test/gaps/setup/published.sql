-- The function that Instagram published, to be adopted.
CREATE SEQUENCE insta5.published_seq;
CREATE FUNCTION insta5.published_id(OUT result bigint) LANGUAGE plpgsql AS $$
DECLARE
    seq_id bigint;
BEGIN
    SELECT nextval('insta5.published_seq') % 1024 INTO seq_id;
    result := (FLOOR(EXTRACT(EPOCH FROM clock_timestamp()) * 1000)::bigint - 1314220021721) << 23;
    result := result | (5 << 10);
    result := result | seq_id;
END $$;
CREATE TABLE insta5.published (id bigint PRIMARY KEY DEFAULT insta5.published_id(), v text);
