ALTER TABLE photos ADD slug text;
