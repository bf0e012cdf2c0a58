-- Beside the tables of examples/application/shard.sql, in the template insta0.
SET search_path = insta0, public;

-- For readers of standbys: jobs.py writes an ID at or below which no new row can appear.
CREATE TABLE settled (
    one_row boolean PRIMARY KEY DEFAULT true CHECK (one_row),
    id      bigint NOT NULL);

-- Work for jobs.py, and its result.
CREATE TABLE jobs (
    id       bigint PRIMARY KEY DEFAULT insta0.next_id(),
    photo_id bigint NOT NULL);
CREATE TABLE thumbnails (
    id       bigint PRIMARY KEY DEFAULT insta0.next_id(),
    photo_id bigint NOT NULL);
