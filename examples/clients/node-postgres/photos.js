// IDs from a column's DEFAULT in node-postgres, as strings and as BigInt.
//
// PGHOST, PGDATABASE and the like name an empty database. If anything does not hold, the program says
// what, and exits with 1.
'use strict';

const assert = require('node:assert/strict');
const { Client } = require('pg');
const { version } = require('pg/package.json');
const { usePrisma } = require('./raw_sql');

// pg_get_serial_sequence() finds the sequence because the column owns it.
const table = `
CREATE EXTENSION IF NOT EXISTS snowflake;
CREATE SEQUENCE photos_id_seq;
CREATE TABLE photos (
    id      bigint PRIMARY KEY DEFAULT snowflake_next_id(0, 'photos_id_seq'),
    caption text NOT NULL);
ALTER SEQUENCE photos_id_seq OWNED BY photos.id;
`;

const isIncreasing = (ids) => ids.every((id, i) => i === 0 || BigInt(ids[i - 1]) < BigInt(id));

async function insert(client, caption, count) {
  const ids = [];
  for (let i = 0; i < count; i++) {
    const result = await client.query('INSERT INTO photos (caption) VALUES ($1) RETURNING id', [caption]);
    ids.push(result.rows[0].id);
  }
  return ids;
}

async function selectIds(client, sql, values) {
  return (await client.query(sql, values)).rows.map((row) => row.id);
}

// Each page begins after the last ID of the page before it.
async function readPages(client, size) {
  const pages = [];
  for (let last = '0'; ; last = pages.at(-1).at(-1)) {
    const page = await selectIds(client, 'SELECT id FROM photos WHERE id > $1 ORDER BY id LIMIT $2', [last, size]);
    if (page.length === 0) return pages;
    pages.push(page);
  }
}

function madeBetween(client, from, to) {
  return selectIds(client, 'SELECT id FROM photos WHERE snowflake_between(id, $1, $2) ORDER BY id', [from, to]);
}

async function useStrings(client) {
  // node-postgres gives a bigint as a string.
  const ids = await insert(client, 'by node', 25);
  assert.equal(typeof ids[0], 'string', 'an ID is no string');
  assert(isIncreasing(ids), `the IDs do not increase: ${ids}`);
  assert(BigInt(ids[0]) >= 2n ** 53n, `${ids[0]} is a position or a counter, and no ID`);
  assert.deepEqual((await readPages(client, 10)).map((page) => page.length), [10, 10, 5], 'the pages have other sizes');
  assert.deepEqual((await readPages(client, 10)).flat(), ids, 'the pages do not have all IDs in order');

  // A back-dated row has the ID of its time.
  const leapDay = new Date('2024-02-29T12:00:00Z');
  const old = await selectIds(client, "INSERT INTO photos VALUES (snowflake_encode($1, 0, 0), 'old') RETURNING id", [leapDay]);
  const after = (time, ms) => new Date(time.getTime() + ms);
  const now = new Date();
  assert.deepEqual(await madeBetween(client, after(now, -60_000), after(now, 60_000)), ids, 'the last minute has other IDs');
  assert.deepEqual(await madeBetween(client, leapDay, after(leapDay, 60_000)), old, '2024-02-29 12:00 has other IDs');

  // A row comes from a server whose clock is a second fast. Then the sequence is reset.
  const [imported] = await selectIds(client, "INSERT INTO photos VALUES (snowflake_encode($1, 0, 0), 'imported') RETURNING id",
    [after(new Date(), 1000)]);
  await client.query("SELECT setval(pg_get_serial_sequence('photos', 'id'), max(id)) FROM photos");
  const more = await insert(client, 'after the reset', 10);
  assert(isIncreasing([imported, ...more]), `after ${imported} and a reset came ${more}`);

  // JSON keeps the digits of strings. As a number the ID would be rounded.
  const { rows: [photo] } = await client.query('SELECT id, caption FROM photos WHERE id = $1', [more.at(-1)]);
  assert.equal(JSON.parse(JSON.stringify(photo)).id, more.at(-1), 'JSON changes an ID');
  assert(more.some((id) => String(JSON.parse(id)) !== id), 'JSON keeps these IDs as numbers, too');

  // JSON that the server makes must have the ID as text.
  const { rows: [{ json, short }] } = await client.query(
    "SELECT json_build_object('id', id::text) AS json, snowflake_to_text(id) AS short FROM photos WHERE id = $1", [more.at(-1)]);
  assert.equal(json.id, more.at(-1), "the server's JSON changes an ID");
  // to_json() writes a number, which JSON.parse() rounds.
  const { rows } = await client.query(`
    SELECT id, to_json(photos) AS rounded, to_jsonb(photos) || jsonb_build_object('id', id::text) AS exact
    FROM photos WHERE id = ANY ($1)`, [more]);
  assert(rows.some(({ id, rounded }) => String(rounded.id) !== id), 'to_json() keeps these IDs, too');
  assert(rows.length === more.length && rows.every(({ id, exact }) => exact.id === id), 'an ID as text changes in JSON');
  const [found] = await selectIds(client, 'SELECT id FROM photos WHERE id = snowflake_from_text($1)', [short]);
  assert.equal(found, more.at(-1), `${short} is another photo`);
  return [...ids, ...more];
}

async function main() {
  const client = new Client();
  await client.connect();
  try {
    await client.query(table);
    const ids = await useStrings(client);
    console.log(`node-postgres ${version}: ${ids.length} IDs as strings; the last one is ${ids.at(-1)}.`);
    const raw = await usePrisma();
    console.log(`raw SQL: ${raw.length} IDs as BigInt; the last one is ${raw.at(-1)}.`);
  } finally {
    await client.end();
  }
}

main().catch((error) => {
  console.error(`node-postgres: ${error.message}`);
  process.exitCode = 1;
});
