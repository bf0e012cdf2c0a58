DROP FUNCTION insta5.other_id();
CREATE OR REPLACE FUNCTION insta5.count_posts() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    PERFORM mallory.note('replaced trigger');
    RETURN NULL;
END $$;
