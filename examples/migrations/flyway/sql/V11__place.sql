ALTER TABLE albums ADD place text;
