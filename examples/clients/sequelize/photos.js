// IDs from a column's DEFAULT in Sequelize, and what it sends for a key without autoIncrement.
//
// PGHOST, PGDATABASE and the like name an empty database. If anything does not hold, the program says
// what, and exits with 1.
'use strict';

const assert = require('node:assert/strict');
const { DataTypes, Op, Sequelize } = require('sequelize');
const { version } = require('sequelize/package.json');

const database = new Sequelize(process.env.PGDATABASE, process.env.PGUSER, null, {
  dialect: 'postgres', host: process.env.PGHOST, port: process.env.PGPORT, logging: false,
});

const Photo = database.define('Photo', {
  id: { type: DataTypes.BIGINT, primaryKey: true, autoIncrement: true },
  caption: { type: DataTypes.TEXT, allowNull: false },
}, { tableName: 'photos', timestamps: false });

// Without autoIncrement.
const Wrong = database.define('Wrong', {
  id: { type: DataTypes.BIGINT, primaryKey: true },
  caption: { type: DataTypes.TEXT, allowNull: false },
}, { tableName: 'photos', timestamps: false });

const isIncreasing = (ids) => ids.every((id, i) => i === 0 || BigInt(ids[i - 1]) < BigInt(id));

async function makeTable() {
  await database.query('CREATE EXTENSION IF NOT EXISTS snowflake');
  await Photo.sync();
  await database.query("SELECT snowflake_attach('photos', shard => 0)");
  await Photo.sync({ alter: true });
  const { id } = await database.getQueryInterface().describeTable('photos');
  assert.match(id.defaultValue, /^snowflake_next_id\(/, 'sync({ alter: true }) takes the DEFAULT away');
}

async function usePhotos() {
  const ids = [];
  for (let i = 0; i < 25; i++) ids.push((await Photo.create({ caption: `photo ${i}` })).id);
  const more = await Photo.bulkCreate(Array.from({ length: 15 }, () => ({ caption: 'by bulkCreate()' })));
  ids.push(...more.map(({ id }) => id));
  assert.equal(typeof ids[0], 'string', 'an ID is no string');
  assert(isIncreasing(ids), `the IDs do not increase: ${ids}`);
  assert(BigInt(ids[0]) >= 2n ** 53n, `${ids[0]} is a position or a counter, and no ID`);

  const page = await Photo.findAll({ where: { id: { [Op.gt]: ids[9] } }, order: ['id'], limit: 10 });
  assert.deepEqual(page.map(({ id }) => id), ids.slice(10, 20), 'the page has other IDs');
  const from = new Date(Date.now() - 60_000);
  const recent = await Photo.count({ where: { id: { [Op.gte]: Sequelize.fn('snowflake_min_id', from) } } });
  assert.equal(recent, ids.length, 'the last minute has other IDs');
  return ids;
}

async function sendNull() {
  for (const insert of [() => Wrong.create({ caption: 'x' }), () => Wrong.bulkCreate([{ caption: 'x' }])]) {
    await assert.rejects(insert, /null value in column "id"/,
      'a key without autoIncrement is left to the DEFAULT: docs/clients/node.md says that it is not');
  }
}

async function main() {
  try {
    await makeTable();
    const ids = await usePhotos();
    await sendNull();
    console.log(`sequelize ${version}: ${ids.length} IDs; the last one is ${ids.at(-1)}.`);
  } finally {
    await database.close();
  }
}

main().catch((error) => {
  console.error(`sequelize: ${error.message}`);
  process.exitCode = 1;
});
