ALTER TABLE "albums" ADD COLUMN "place" TEXT;
