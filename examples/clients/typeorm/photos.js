// IDs from a column's DEFAULT in TypeORM, and what synchronize() makes of them.
//
// PGHOST, PGDATABASE and the like name an empty database. If anything does not hold, the program says
// what, and exits with 1.
'use strict';

const assert = require('node:assert/strict');
const { DataSource, EntitySchema, MoreThan } = require('typeorm');
const { dependencies } = require('./package.json');

const Photo = new EntitySchema({
  name: 'Photo',
  tableName: 'photos',
  columns: {
    id: { type: 'bigint', primary: true, default: () => "snowflake_next_id(0, 'photos_id_seq')" },
    caption: { type: 'text' },
  },
});

// TypeORM takes every DEFAULT but nextval() away from such a column.
const Wrong = new EntitySchema({
  name: 'Wrong',
  tableName: 'wrong',
  columns: { id: { type: 'bigint', primary: true, generated: 'increment' } },
});

// With ::regclass, which TypeORM takes off the server's text before it compares.
const Restless = new EntitySchema({
  ...Photo.options,
  columns: {
    ...Photo.options.columns,
    id: { type: 'bigint', primary: true, default: () => "snowflake_next_id(0, 'photos_id_seq'::regclass)" },
  },
});

async function withDatabase(entity, work) {
  const database = await new DataSource({
    type: 'postgres',
    host: process.env.PGHOST,
    port: Number(process.env.PGPORT ?? 5432),
    username: process.env.PGUSER,
    database: process.env.PGDATABASE,
    entities: [entity],
  }).initialize();
  try {
    return await work(database);
  } finally {
    await database.destroy();
  }
}

// What synchronize() would run.
async function pending(database) {
  const { upQueries } = await database.driver.createSchemaBuilder().log();
  return upQueries.map(({ query }) => query).join('\n');
}

const isIncreasing = (ids) => ids.every((id, i) => i === 0 || BigInt(ids[i - 1]) < BigInt(id));

async function usePhotos(database) {
  await database.query('CREATE EXTENSION IF NOT EXISTS snowflake');
  await database.query('CREATE SEQUENCE photos_id_seq');
  await database.synchronize();
  await database.query('ALTER SEQUENCE photos_id_seq OWNED BY photos.id');
  assert.equal(await pending(database), '', 'a second synchronize() has something to do');

  const photos = database.getRepository(Photo);
  const saved = await photos.save(Array.from({ length: 25 }, (_, i) => ({ caption: `photo ${i}` })));
  const { identifiers } = await photos.insert(Array.from({ length: 15 }, () => ({ caption: 'by insert()' })));
  const ids = [...saved, ...identifiers].map(({ id }) => id);
  assert.equal(typeof ids[0], 'string', 'an ID is no string');
  assert(isIncreasing(ids), `the IDs do not increase: ${ids}`);
  assert(BigInt(ids[0]) >= 2n ** 53n, `${ids[0]} is a position or a counter, and no ID`);

  const page = await photos.find({ where: { id: MoreThan(ids[9]) }, order: { id: 'ASC' }, take: 10 });
  assert.deepEqual(page.map(({ id }) => id), ids.slice(10, 20), 'the page has other IDs');
  const recent = await photos.createQueryBuilder('photo')
    .where('photo.id >= snowflake_min_id(:from)', { from: new Date(Date.now() - 60_000) }).getCount();
  assert.equal(recent, ids.length, 'the last minute has other IDs');
  return ids;
}

async function useWrong(database) {
  await database.synchronize();
  await database.query("SELECT snowflake_attach('wrong', shard => 0)");
  assert.match(await pending(database), /ALTER COLUMN "id" DROP DEFAULT/,
    "synchronize() leaves the DEFAULT of generated: 'increment': docs/clients/node.md says that it does not");
}

async function useRestless(database) {
  assert.match(await pending(database), /^ALTER TABLE "photos" ALTER COLUMN "id" SET DEFAULT \S+ \S+$/,
    'synchronize() has nothing to do where the DEFAULT is written with ::regclass: docs/clients/node.md says that it has');
}

async function main() {
  const ids = await withDatabase(Photo, usePhotos);
  await withDatabase(Wrong, useWrong);
  await withDatabase(Restless, useRestless);
  console.log(`typeorm ${dependencies.typeorm}: ${ids.length} IDs; the last one is ${ids.at(-1)}.`);
}

main().catch((error) => {
  console.error(`typeorm: ${error.message}`);
  process.exitCode = 1;
});
