-- AlterTable
ALTER TABLE "photos" ADD COLUMN     "slug" TEXT;
