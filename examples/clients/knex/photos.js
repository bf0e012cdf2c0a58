// IDs from a column's DEFAULT in Knex, and what alter() makes of it.
//
// PGHOST, PGDATABASE and the like name an empty database. If anything does not hold, the program says
// what, and exits with 1.
'use strict';

const assert = require('node:assert/strict');
const { version } = require('knex/package.json');
const knex = require('knex')({ client: 'pg', connection: {} });

// A migration's up().
async function up(trx) {
  await trx.raw('CREATE EXTENSION IF NOT EXISTS snowflake');
  await trx.raw('CREATE SEQUENCE photos_id_seq');
  await trx.schema.createTable('photos', (table) => {
    table.bigInteger('id').primary().defaultTo(trx.raw("snowflake_next_id(0, 'photos_id_seq')"));
    table.text('caption').notNullable();
  });
  await trx.raw('ALTER SEQUENCE photos_id_seq OWNED BY photos.id');
}

const isIncreasing = (ids) => ids.every((id, i) => i === 0 || BigInt(ids[i - 1]) < BigInt(id));

async function usePhotos() {
  const captions = Array.from({ length: 25 }, (_, i) => ({ caption: `photo ${i}` }));
  const rows = await knex('photos').insert(captions).returning('id');
  rows.push(...await knex.batchInsert('photos', captions.slice(10), 10).returning('id'));
  const ids = rows.map(({ id }) => id);
  assert.equal(typeof ids[0], 'string', 'an ID is no string');
  assert(isIncreasing(ids), `the IDs do not increase: ${ids}`);
  assert(BigInt(ids[0]) >= 2n ** 53n, `${ids[0]} is a position or a counter, and no ID`);

  const page = await knex('photos').where('id', '>', ids[9]).orderBy('id').limit(10).pluck('id');
  assert.deepEqual(page, ids.slice(10, 20), 'the page has other IDs');
  const recent = await knex('photos').whereRaw('id >= snowflake_min_id(?)', [new Date(Date.now() - 60_000)]).pluck('id');
  assert.equal(recent.length, ids.length, 'the last minute has other IDs');
  return ids;
}

// alter() drops the DEFAULT first, and fails after that. Here a transaction brings it back.
async function alterId() {
  const statements = [];
  const change = knex.transaction((trx) => {
    trx.on('query', ({ sql }) => statements.push(sql));
    return trx.schema.alterTable('photos', (table) => table.bigInteger('id').alter());
  });
  await assert.rejects(change, /column "id" is in a primary key/, 'alter() of the ID is no error: docs/clients/node.md says that it is');
  assert(statements.includes('alter table "photos" alter column "id" drop default'),
    'alter() leaves the DEFAULT: docs/clients/node.md says that it does not');
}

async function main() {
  try {
    await knex.transaction(up);
    const ids = await usePhotos();
    await alterId();
    console.log(`knex ${version}: ${ids.length} IDs; the last one is ${ids.at(-1)}.`);
  } finally {
    await knex.destroy();
  }
}

main().catch((error) => {
  console.error(`knex: ${error.message}`);
  process.exitCode = 1;
});
