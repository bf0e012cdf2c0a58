// IDs from a column's DEFAULT in MikroORM, with the extension in a schema of its own, and what the schema
// generator makes of both.
//
// PGHOST, PGDATABASE and the like name an empty database. If anything does not hold, the program says
// what, and exits with 1.
'use strict';

const assert = require('node:assert/strict');
const { dependencies } = require('./package.json');

const id = {
  type: 'bigint', primary: true, autoincrement: false,
  defaultRaw: "snowflake.snowflake_next_id(0, 'photos_id_seq'::regclass)",
};

// The text of the DEFAULT is not that of the server.
const restlessId = { ...id, defaultRaw: "snowflake.snowflake_next_id(0, 'photos_id_seq')" };

// MikroORM makes a bigserial of such a column.
const wrongId = { ...id, autoincrement: undefined };

async function withDatabase(idColumn, schemaGenerator, work) {
  const { EntitySchema, MikroORM } = await import('@mikro-orm/postgresql');
  const orm = await MikroORM.init({
    entities: [new EntitySchema({ name: 'Photo', tableName: 'photos', properties: { id: idColumn, caption: { type: 'text' } } })],
    host: process.env.PGHOST, port: Number(process.env.PGPORT ?? 5432), user: process.env.PGUSER, dbName: process.env.PGDATABASE,
    schemaGenerator,
  });
  try {
    return await work(orm);
  } finally {
    await orm.close();
  }
}

const ignoring = { ignoreSchema: ['snowflake'] };
const isIncreasing = (ids) => ids.every((each, i) => i === 0 || ids[i - 1] < each);

async function usePhotos(orm) {
  await orm.schema.execute(`
    CREATE SCHEMA snowflake;
    CREATE EXTENSION snowflake SCHEMA snowflake;
    CREATE SEQUENCE photos_id_seq;`);
  await orm.schema.update();
  await orm.schema.execute('ALTER SEQUENCE photos_id_seq OWNED BY photos.id');
  assert.equal(await orm.schema.getUpdateSchemaSQL(), '', 'a second update() has something to do');

  const em = orm.em.fork();
  const photos = Array.from({ length: 40 }, (_, i) => em.create('Photo', { caption: `photo ${i}` }));
  await em.flush();
  const ids = photos.map((photo) => photo.id);
  assert.equal(typeof ids[0], 'bigint', 'an ID is no BigInt');
  assert(isIncreasing(ids), `the IDs do not increase: ${ids}`);
  assert(ids[0] >= 2n ** 53n, `${ids[0]} is a position or a counter, and no ID`);
  assert.equal(JSON.parse(JSON.stringify(photos[0])).id, String(ids[0]), 'JSON changes an ID');

  const page = await em.fork().find('Photo', { id: { $gt: ids[9] } }, { orderBy: { id: 'asc' }, limit: 10 });
  assert.deepEqual(page.map((photo) => photo.id), ids.slice(10, 20), 'the page has other IDs');
  const [recent] = await em.execute('SELECT count(*) FROM photos WHERE id >= snowflake.snowflake_min_id(?)',
    [new Date(Date.now() - 60_000)]);
  assert.equal(Number(recent.count), ids.length, 'the last minute has other IDs');
  return ids;
}

// The statements that update() would run.
const pending = (idColumn, schemaGenerator) => withDatabase(idColumn, schemaGenerator, (orm) => orm.schema.getUpdateSchemaSQL());

async function main() {
  const ids = await withDatabase(id, ignoring, usePhotos);
  const cases = [
    ['no ignoreSchema', id, {}, /drop view if exists "snowflake"."snowflake_columns" cascade;[^]*drop schema if exists "snowflake";/],
    ['no autoincrement: false', wrongId, ignoring, /alter column "id" set default nextval\('photos_id_seq'\)/],
    ['no ::regclass', restlessId, ignoring, /alter column "id" set default snowflake.snowflake_next_id/],
  ];
  for (const [name, idColumn, schemaGenerator, statement] of cases) {
    assert.match(await pending(idColumn, schemaGenerator), statement, `${name}: docs/clients/node.md names another statement`);
  }
  assert.equal(await pending(id, { skipViews: [/^snowflake_/] }), '', 'skipViews leaves something to do');
  console.log(`mikro-orm ${dependencies['@mikro-orm/core']}: ${ids.length} IDs as BigInt; the last one is ${ids.at(-1)}.`);
}

main().catch((error) => {
  console.error(`mikro-orm: ${error.message}`);
  process.exitCode = 1;
});
