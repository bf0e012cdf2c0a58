// The service with Drizzle: each shard has a database object of its own. The verbs are those of photos.js.
//
//   node photos_drizzle.js sign-up NAME | post NAME CAPTION | timeline NAME | photo ID | like NAME PHOTO_ID
//                          | load SECONDS [CLIENTS]
//
// PGBOUNCER_HOST and PGBOUNCER_PORT are PgBouncer's.
'use strict';

const { setTimeout: sleep } = require('node:timers/promises');
const { and, count, desc, eq, lt, sql } = require('drizzle-orm');
const { drizzle } = require('drizzle-orm/node-postgres');
const { bigint, pgTable, text } = require('drizzle-orm/pg-core');

const { load } = require('./load');
const { Router, shardOfId, shardOfName } = require('./route');

// The tables are made by shard.sql. next_id() is never sent: Drizzle writes DEFAULT. In TypeScript an INSERT would need an
// ID without it.
const id = (name) => bigint(name, { mode: 'bigint' });
const made = (name) => id(name).primaryKey().default(sql`next_id()`);
const other = (name) => id(name).notNull();
const users = pgTable('users', { id: made('id'), name: text('name').notNull() });
const names = pgTable('names', { name: text('name').primaryKey(), userId: other('user_id') });
const photos = pgTable('photos', { id: made('id'), userId: other('user_id'), caption: text('caption').notNull() });
const likes = pgTable('likes', { photoId: other('photo_id'), userId: other('user_id') });
const outbox = pgTable('outbox', { id: made('id'), userId: other('user_id'), photoId: other('photo_id') });

const { PGBOUNCER_HOST = '/tmp', PGBOUNCER_PORT = '6432' } = process.env;
const router = new Router({ host: PGBOUNCER_HOST, port: Number(PGBOUNCER_PORT) });

// Returns work(tx), done in one transaction; again if the shard has moved: SQLSTATE 25006.
async function transaction(shard, work, patience = 30_000) {
  for (const deadline = Date.now() + patience; ; await sleep(50)) {
    try {
      return await drizzle(router.pool(shard)).transaction(work);
    } catch (error) {
      if (error.cause?.code !== '25006' || Date.now() > deadline) throw error;
    }
  }
}

async function signUp(name) {
  try {
    return await transaction(shardOfName(name), async (tx) => {
      const [user] = await tx.insert(users).values({ name }).returning({ id: users.id });
      await tx.insert(names).values({ name, userId: user.id });
      return user.id;
    });
  } catch (error) {
    throw error.cause?.code === '23505' ? new Error(`the name ${name} is taken`) : error;
  }
}

async function findUser(name) {
  const [row] = await transaction(shardOfName(name), (tx) => tx.select().from(names).where(eq(names.name, name)));
  if (!row) throw new Error(`there is no user ${name}`);
  return row.userId;
}

async function post(userId, caption) {
  const [row] = await transaction(
    shardOfId(userId), (tx) => tx.insert(photos).values({ userId, caption }).returning({ id: photos.id }));
  return row.id;
}

function timeline(userId, before = 2n ** 63n - 1n, limit = 20) {
  return transaction(shardOfId(userId), (tx) => tx.select().from(photos)
    .where(and(eq(photos.userId, userId), lt(photos.id, before))).orderBy(desc(photos.id)).limit(limit));
}

function photo(photoId) {
  return transaction(shardOfId(photoId), async (tx) => {
    const [found] = await tx.select().from(photos).where(eq(photos.id, photoId));
    const [liked] = await tx.select({ count: count() }).from(likes).where(eq(likes.photoId, photoId));
    return { ...found, likes: liked.count };
  });
}

function like(userId, photoId) {
  return transaction(shardOfId(photoId), async (tx) => {
    const { rowCount } = await tx.insert(likes).values({ photoId, userId }).onConflictDoNothing();
    if (rowCount) await tx.insert(outbox).values({ userId, photoId });
  });
}

async function main(verb, ...words) {
  if (verb === 'sign-up') console.log(`${await signUp(words[0])}`);
  else if (verb === 'post') console.log(`${await post(await findUser(words[0]), words[1])}`);
  else if (verb === 'timeline') {
    for (const row of await timeline(await findUser(words[0]))) console.log(`${row.id} ${row.caption}`);
  } else if (verb === 'photo') console.log(Object.values(await photo(BigInt(words[0]))).join(' '));
  else if (verb === 'like') await like(await findUser(words[0]), BigInt(words[1]));
  else if (verb === 'load') await load('dz', { signUp, post, timeline, like }, Number(words[0]), Number(words[1] ?? 4));
  else throw new Error('a verb is missing: see the head of photos_drizzle.js');
}

main(...process.argv.slice(2))
  .catch((error) => {
    console.error(error.message);
    process.exitCode = 1;
  })
  .finally(() => router.end());
