-- AlterTable
ALTER TABLE "photos" ALTER COLUMN "slug" SET NOT NULL;
