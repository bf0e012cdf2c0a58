// The newest photos of users in many shards, as feed.py. route.js of examples/application is in the same folder.
//
//   node feed.js USER_ID...     prints all pages
//
// PGBOUNCER_HOST and PGBOUNCER_PORT are PgBouncer's.
'use strict';

const { setTimeout: sleep } = require('node:timers/promises');
const { Router, shardOfId } = require('./route');

const END = '9223372036854775807';
const router = new Router({ host: process.env.PGBOUNCER_HOST ?? '/tmp', port: Number(process.env.PGBOUNCER_PORT ?? 6432) });

// work(shard) of all shards at the same time: the results, and the reasons of the shards without one.
async function ask(shards, work, ms = 2000) {
  const late = sleep(ms, null, { ref: false }).then(() => { throw new Error('late'); });
  const results = await Promise.allSettled(shards.map((shard) => Promise.race([work(shard), late])));
  late.catch(() => {});
  const missing = shards.map((shard, i) => [shard, results[i].reason?.message]).filter(([, reason]) => reason !== undefined);
  return [results.filter((result) => result.status === 'fulfilled').map((result) => result.value), missing];
}

// The newest photos with IDs below before, and the shards that are missing in this page. Suffix '_ro' reads standbys.
async function feed(users, before = END, limit = 50, suffix = '') {
  const usersOf = new Map();
  for (const user of users) {
    const shard = shardOfId(user);
    usersOf.set(shard, [...usersOf.get(shard) ?? [], user]);
  }
  const [pages, missing] = await ask([...usersOf.keys()], (shard) => router.rows(`${shard}${suffix}`, `
    SELECT p.id, p.user_id, p.caption
    FROM unnest($1::bigint[]) AS u (id) CROSS JOIN LATERAL (
        SELECT * FROM photos WHERE user_id = u.id AND id < $2 ORDER BY id DESC LIMIT $3) AS p
    ORDER BY p.id DESC LIMIT $3`, [usersOf.get(shard), before, limit]));
  const photos = pages.flat().sort((a, b) => (BigInt(a.id) < BigInt(b.id) ? 1 : -1));
  return [photos.slice(0, limit), missing];
}

// An ID at or below which no new row can appear in any of these shards. It waits for writers.
async function bound(shards, ms = 10_000) {
  const [answers, missing] = await ask(shards, async (shard) => {
    await router.rows(shard, 'SELECT next_id()'); // a shard without writes would return the ID of an old row
    return BigInt((await router.rows(shard, 'SELECT settled_id() AS id'))[0].id);
  }, ms);
  if (missing.length) throw new Error(`no answer of shards: ${missing.join('; ')}`);
  return answers.reduce((a, b) => (a < b ? a : b));
}

async function main(users) {
  for (let before = END; ;) {
    const [photos, missing] = await feed(users, before);
    for (const photo of photos) console.log(photo.id, photo.user_id, photo.caption);
    if (missing.length) throw new Error(`incomplete, no answer of shards: ${missing.join('; ')}`);
    if (!photos.length) return;
    before = photos.at(-1).id;
  }
}

module.exports = { ask, bound, feed, router };

if (require.main === module) {
  main(process.argv.slice(2))
    .catch((error) => {
      console.error(error.message);
      process.exitCode = 1;
    })
    .finally(() => router.end());
}
