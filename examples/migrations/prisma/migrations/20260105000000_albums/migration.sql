-- CreateTable
CREATE TABLE "albums" (
    "id" BIGINT NOT NULL DEFAULT next_id(),
    "title" TEXT NOT NULL,

    CONSTRAINT "albums_pkey" PRIMARY KEY ("id")
);
