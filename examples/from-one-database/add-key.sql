-- comments had only the photo. With the key of the photo's user they stand beside the photo. Programs insert as before.
ALTER TABLE comments ADD user_id bigint;
CREATE FUNCTION set_user_of_comment() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    NEW.user_id := (SELECT user_id FROM photos WHERE id = NEW.photo_id);
    RETURN NEW;
END $$;
CREATE TRIGGER set_user BEFORE INSERT ON comments FOR EACH ROW EXECUTE FUNCTION set_user_of_comment();

-- Rows that are there, 10,000 in a transaction.
SELECT format('UPDATE comments AS c SET user_id = p.user_id FROM photos AS p
               WHERE p.id = c.photo_id AND c.id BETWEEN %s AND %s', n, n + 9999)
FROM generate_series(1, (SELECT max(id) FROM comments), 10000) AS n \gexec

-- A CHECK that is validated lets SET NOT NULL lock the table for a moment only.
ALTER TABLE comments ADD CONSTRAINT has_user CHECK (user_id IS NOT NULL) NOT VALID;
ALTER TABLE comments VALIDATE CONSTRAINT has_user;
ALTER TABLE comments ALTER user_id SET NOT NULL, DROP CONSTRAINT has_user;
