-- CreateIndex
CREATE INDEX CONCURRENTLY "photos_user" ON "photos"("user_id");
