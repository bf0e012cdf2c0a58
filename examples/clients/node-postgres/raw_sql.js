// Raw SQL in the form of Prisma's $queryRaw, over node-postgres: a tagged template becomes a statement
// with parameters, and a bigint is a BigInt. The statements are the same in a program with Prisma.
'use strict';

const assert = require('node:assert/strict');
const { Client, types } = require('pg');

const bigintAsBigInt = {
  getTypeParser: (oid, format) => (oid === types.builtins.INT8 ? BigInt : types.getTypeParser(oid, format)),
};

async function connect() {
  const client = new Client({ types: bigintAsBigInt });
  await client.connect();
  return {
    async $queryRaw(strings, ...values) {
      const sql = strings.reduce((text, part, i) => `${text}$${i}${part}`);
      return (await client.query(sql, values)).rows;
    },
    $disconnect: () => client.end(),
  };
}

// JSON has no BigInt: an ID goes as a string, and comes back by BigInt().
const toJson = (value) => JSON.stringify(value, (key, field) => (typeof field === 'bigint' ? field.toString() : field));

async function insert(prisma, caption, count) {
  const ids = [];
  for (let i = 0; i < count; i++) {
    const [{ id }] = await prisma.$queryRaw`INSERT INTO photos (caption) VALUES (${caption}) RETURNING id`;
    ids.push(id);
  }
  return ids;
}

async function usePrisma() {
  const prisma = await connect();
  try {
    const [{ newest }] = await prisma.$queryRaw`SELECT max(id) AS newest FROM photos`;
    const ids = await insert(prisma, 'by raw SQL', 15);
    assert.equal(typeof ids[0], 'bigint', 'an ID is no BigInt');
    assert([newest, ...ids].every((id, i, all) => i === 0 || all[i - 1] < id), `after ${newest} came ${ids}`);

    const page = await prisma.$queryRaw`SELECT id FROM photos WHERE id > ${newest} ORDER BY id LIMIT ${10}`;
    assert.deepEqual(page.map((row) => row.id), ids.slice(0, 10), 'the page has other IDs');
    const from = new Date(Date.now() - 60_000);
    const recent = await prisma.$queryRaw`
      SELECT id FROM photos
      WHERE id >= snowflake_min_id(${from}) AND caption = 'by raw SQL' ORDER BY id`;
    assert.deepEqual(recent.map((row) => row.id), ids, 'the last minute has other IDs');

    // The statement of Rails' reset_pk_sequence!.
    const [{ last }] = await prisma.$queryRaw`SELECT max(id) AS last FROM photos`;
    await prisma.$queryRaw`SELECT setval(pg_get_serial_sequence('photos', 'id'), ${last}, true)`;
    const more = await insert(prisma, 'after the reset', 5);
    assert(last < more[0], `after ${last} and a reset came ${more}`);

    const sent = toJson({ id: more.at(-1) });
    assert.equal(BigInt(JSON.parse(sent).id), more.at(-1), `JSON changes an ID: ${sent}`);
    return [...ids, ...more];
  } finally {
    await prisma.$disconnect();
  }
}

module.exports = { usePrisma };
