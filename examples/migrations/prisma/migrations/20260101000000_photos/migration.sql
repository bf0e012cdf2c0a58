-- CreateTable
CREATE TABLE "photos" (
    "id" BIGINT NOT NULL DEFAULT next_id(),
    "user_id" BIGINT NOT NULL,
    "caption" TEXT NOT NULL,

    CONSTRAINT "photos_pkey" PRIMARY KEY ("id")
);
