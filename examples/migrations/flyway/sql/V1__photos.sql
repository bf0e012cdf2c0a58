CREATE TABLE photos (
    id      bigint PRIMARY KEY DEFAULT next_id(),
    user_id bigint NOT NULL,
    caption text NOT NULL);
