ALTER TABLE insta5.users ADD COLUMN extra integer DEFAULT 7;
-- carried over if
SELECT EXISTS (SELECT FROM pg_attribute WHERE attrelid = 'insta5.users'::regclass AND attname = 'extra');
