// IDs from a column's DEFAULT in Kysely, and how its JSON helpers keep their digits.
//
// PGHOST, PGDATABASE and the like name an empty database. If anything does not hold, the program says
// what, and exits with 1.
'use strict';

const assert = require('node:assert/strict');
const { Kysely, PostgresDialect, sql } = require('kysely');
const { jsonObjectFrom } = require('kysely/helpers/postgres');
const { Pool } = require('pg');
const { dependencies } = require('./package.json');

// A migration's up().
async function up(db) {
  await sql`CREATE EXTENSION IF NOT EXISTS snowflake`.execute(db);
  await sql`CREATE SEQUENCE photos_id_seq`.execute(db);
  await db.schema.createTable('photos')
    .addColumn('id', 'bigint', (column) => column.primaryKey().defaultTo(sql`snowflake_next_id(0, 'photos_id_seq')`))
    .addColumn('caption', 'text', (column) => column.notNull())
    .execute();
  await sql`ALTER SEQUENCE photos_id_seq OWNED BY photos.id`.execute(db);
  await db.schema.createTable('likes').addColumn('photo_id', 'bigint', (column) => column.references('photos.id')).execute();
}

const isIncreasing = (ids) => ids.every((id, i) => i === 0 || BigInt(ids[i - 1]) < BigInt(id));

async function usePhotos(db) {
  const captions = Array.from({ length: 40 }, (_, i) => ({ caption: `photo ${i}` }));
  const ids = (await db.insertInto('photos').values(captions).returning('id').execute()).map(({ id }) => id);
  assert.equal(typeof ids[0], 'string', 'an ID is no string');
  assert(isIncreasing(ids), `the IDs do not increase: ${ids}`);
  assert(BigInt(ids[0]) >= 2n ** 53n, `${ids[0]} is a position or a counter, and no ID`);

  const page = await db.selectFrom('photos').select('id').where('id', '>', ids[9]).orderBy('id').limit(10).execute();
  assert.deepEqual(page.map(({ id }) => id), ids.slice(10, 20), 'the page has other IDs');
  const from = new Date(Date.now() - 60_000);
  const recent = await db.selectFrom('photos').select('id').where('id', '>=', sql`snowflake_min_id(${from})`).execute();
  assert.equal(recent.length, ids.length, 'the last minute has other IDs');
  return ids;
}

const idAsText = sql`photos.id::text`.as('id');

// In JSON an ID is a number. At most one of two neighbours is exact.
async function nest(db, ids) {
  await db.insertInto('likes').values(ids.slice(0, 2).map((id) => ({ photo_id: id }))).execute();
  const likesWith = (id) => db.selectFrom('likes').select((eb) => ['photo_id', jsonObjectFrom(
    eb.selectFrom('photos').select([id, 'caption']).whereRef('photos.id', '=', 'likes.photo_id')).as('photo')]).execute();
  assert((await likesWith('photos.id')).some(({ photo_id, photo }) => photo_id !== String(photo.id)),
    'jsonObjectFrom() keeps the digits: docs/clients/node.md says that it does not');
  assert((await likesWith(idAsText)).every(({ photo_id, photo }) => photo_id === photo.id),
    'an ID as text changes in jsonObjectFrom()');
}

async function main() {
  const db = new Kysely({ dialect: new PostgresDialect({ pool: new Pool() }) });
  try {
    await up(db);
    const ids = await usePhotos(db);
    await nest(db, ids);
    console.log(`kysely ${dependencies.kysely}: ${ids.length} IDs; the last one is ${ids.at(-1)}.`);
  } finally {
    await db.destroy();
  }
}

main().catch((error) => {
  console.error(`kysely: ${error.message}`);
  process.exitCode = 1;
});
