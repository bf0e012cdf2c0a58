// A service for photos in many shards, with node-postgres. photos.py has all of it.
//
//   node photos.js sign-up NAME | post NAME CAPTION | timeline NAME | photo ID | like NAME PHOTO_ID | load SECONDS [CLIENTS]
//
// PGBOUNCER_HOST and PGBOUNCER_PORT are PgBouncer's.
'use strict';

const { load } = require('./load');
const { Router, shardOfId, shardOfName } = require('./route');

const router = new Router({ host: process.env.PGBOUNCER_HOST ?? '/tmp', port: Number(process.env.PGBOUNCER_PORT ?? 6432) });

class NameTaken extends Error {}

// The user's shard is that of the first name, so one transaction is enough. The ID keeps it.
async function signUp(name) {
  try {
    return await router.transaction(shardOfName(name), async (client) => {
      const { rows: [{ id }] } = await client.query('INSERT INTO users (name) VALUES ($1) RETURNING id', [name]);
      await client.query('INSERT INTO names (name, user_id) VALUES ($1, $2)', [name, id]);
      return id;
    });
  } catch (error) {
    throw error.code === '23505' ? new NameTaken(`the name ${name} is taken`) : error;
  }
}

async function findUser(name) {
  const [row] = await router.rows(shardOfName(name), 'SELECT user_id FROM names WHERE name = $1', [name]);
  if (!row) throw new Error(`there is no user ${name}`);
  return row.user_id;
}

async function post(userId, caption) {
  const [row] = await router.rows(
    shardOfId(userId), 'INSERT INTO photos (user_id, caption) VALUES ($1, $2) RETURNING id', [userId, caption]);
  return row.id;
}

// The next page begins before the last ID of this one.
function timeline(userId, before = '9223372036854775807', limit = 20) {
  return router.rows(
    shardOfId(userId),
    'SELECT id, caption FROM photos WHERE user_id = $1 AND id < $2 ORDER BY id DESC LIMIT $3', [userId, before, limit]);
}

async function photo(photoId) {
  const [row] = await router.rows(
    shardOfId(photoId),
    'SELECT id, user_id, caption, (SELECT count(*) FROM likes WHERE photo_id = id) AS likes FROM photos WHERE id = $1',
    [photoId]);
  return row;
}

// In the shard of the photo. The row of the outbox says what is to be done in the shard of the user.
function like(userId, photoId) {
  return router.transaction(shardOfId(photoId), async (client) => {
    const { rowCount } = await client.query(
      'INSERT INTO likes (photo_id, user_id) VALUES ($1, $2) ON CONFLICT DO NOTHING', [photoId, userId]);
    if (rowCount) await client.query('INSERT INTO outbox (user_id, photo_id) VALUES ($1, $2)', [userId, photoId]);
  });
}

async function main(verb, ...words) {
  if (verb === 'sign-up') console.log(await signUp(words[0]));
  else if (verb === 'post') console.log(await post(await findUser(words[0]), words[1]));
  else if (verb === 'timeline') for (const { id, caption } of await timeline(await findUser(words[0]))) console.log(id, caption);
  else if (verb === 'photo') console.log(...Object.values(await photo(words[0])));
  else if (verb === 'like') await like(await findUser(words[0]), words[1]);
  else if (verb === 'load') await load('js', { signUp, post, timeline, like }, Number(words[0]), Number(words[1] ?? 4));
  else throw new Error('a verb is missing: see the head of photos.js');
}

main(...process.argv.slice(2))
  .catch((error) => {
    console.error(error.message);
    process.exitCode = 1;
  })
  .finally(() => router.end());
