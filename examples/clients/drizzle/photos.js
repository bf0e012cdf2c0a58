// IDs from a column's DEFAULT in Drizzle, as BigInt, and two ways to lose digits.
//
// PGHOST, PGDATABASE and the like name an empty database. If anything does not hold, the program says
// what, and exits with 1.
'use strict';

const assert = require('node:assert/strict');
const { asc, eq, gt, relations, sql } = require('drizzle-orm');
const { drizzle } = require('drizzle-orm/node-postgres');
const { bigint, pgSequence, pgTable, text } = require('drizzle-orm/pg-core');
const { dependencies } = require('./package.json');
const { Client } = require('pg');

const photosIdSeq = pgSequence('photos_id_seq');
const photos = pgTable('photos', {
  id: bigint('id', { mode: 'bigint' }).primaryKey().default(sql`snowflake_next_id(0, 'photos_id_seq'::regclass)`),
  caption: text('caption').notNull(),
});

const likes = pgTable('likes', { photoId: bigint('photo_id', { mode: 'bigint' }).notNull() });
const likesRelations = relations(likes, ({ one }) => ({
  photo: one(photos, { fields: [likes.photoId], references: [photos.id] }),
}));

// A number in JavaScript has 53 bits: several IDs become the same one.
const roundedPhotos = pgTable('photos', { id: bigint('id', { mode: 'number' }), caption: text('caption') });

// After CREATE EXTENSION: what "drizzle-kit generate" writes of this schema.
const migration = `
CREATE EXTENSION IF NOT EXISTS snowflake;
CREATE SEQUENCE "public"."photos_id_seq" INCREMENT BY 1 MINVALUE 1 MAXVALUE 9223372036854775807 START WITH 1 CACHE 1;
CREATE TABLE "photos" (
	"id" bigint PRIMARY KEY DEFAULT snowflake_next_id(0, 'photos_id_seq'::regclass) NOT NULL,
	"caption" text NOT NULL
);
CREATE TABLE "likes" (
	"photo_id" bigint NOT NULL
);
`;

const isIncreasing = (ids) => ids.every((id, i) => i === 0 || ids[i - 1] < id);

async function usePhotos(db) {
  const captions = Array.from({ length: 40 }, (_, i) => ({ caption: `photo ${i}` }));
  const ids = (await db.insert(photos).values(captions).returning({ id: photos.id })).map(({ id }) => id);
  assert.equal(typeof ids[0], 'bigint', 'an ID is no BigInt');
  assert(isIncreasing(ids), `the IDs do not increase: ${ids}`);
  assert(ids[0] >= 2n ** 53n, `${ids[0]} is a position or a counter, and no ID`);

  const page = await db.select({ id: photos.id }).from(photos).where(gt(photos.id, ids[9])).orderBy(asc(photos.id)).limit(10);
  assert.deepEqual(page.map(({ id }) => id), ids.slice(10, 20), 'the page has other IDs');
  const from = new Date(Date.now() - 60_000);
  const recent = await db.$count(photos, sql`${photos.id} >= snowflake_min_id(${from})`);
  assert.equal(recent, ids.length, 'the last minute has other IDs');
  return ids;
}

async function loseDigits(db, ids) {
  const rounded = await db.select({ id: roundedPhotos.id }).from(roundedPhotos);
  assert(new Set(rounded.map(({ id }) => id)).size < ids.length,
    "mode: 'number' keeps the digits: docs/clients/node.md says that it does not");

  // The rows of "with" come as JSON, in which an ID is a number. At most one of two neighbours is exact.
  await db.insert(likes).values(ids.slice(0, 2).map((photoId) => ({ photoId })));
  const nested = await db.query.likes.findMany({ with: { photo: true } });
  assert(nested.some(({ photoId, photo }) => photoId !== photo.id),
    '"with" keeps the digits: docs/clients/node.md says that it does not');

  const joined = await db.select().from(likes).innerJoin(photos, eq(likes.photoId, photos.id));
  assert(joined.length === 2 && joined.every((row) => row.likes.photoId === row.photos.id), 'a join loses digits');
}

async function main() {
  const client = new Client();
  await client.connect();
  try {
    await client.query(migration);
    const db = drizzle(client, { schema: { photosIdSeq, photos, likes, likesRelations } });
    const ids = await usePhotos(db);
    await loseDigits(db, ids);
    console.log(`drizzle ${dependencies['drizzle-orm']}: ${ids.length} IDs as BigInt; the last one is ${ids.at(-1)}.`);
  } finally {
    await client.end();
  }
}

main().catch((error) => {
  console.error(`drizzle: ${error.message}`);
  process.exitCode = 1;
});
