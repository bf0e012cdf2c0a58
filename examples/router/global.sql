-- The rows of the global tables, on the server where they are written, and the publication that the
-- other servers subscribe to.
INSERT INTO filters VALUES ('plain'), ('lo-fi'), ('sutro');
CREATE PUBLICATION global FOR TABLE filters;
