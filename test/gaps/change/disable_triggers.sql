ALTER TABLE insta5.posts DISABLE TRIGGER USER;
-- carried over if
SELECT tgenabled = 'D' FROM pg_trigger WHERE tgrelid = 'insta5.posts'::regclass AND tgname = 'count_posts';
