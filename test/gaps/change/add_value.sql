ALTER TYPE insta5.mood ADD VALUE 'calm';
-- carried over if
SELECT count(*) = 3 FROM pg_enum WHERE enumtypid = 'insta5.mood'::regtype;
