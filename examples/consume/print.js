// Prints each photo of the shard insta5 as a line of JSON, at least once: the last ID is stored after the lines are printed.
//
// PGHOST, PGDATABASE and the like lead to the shard's server. The last ID is in the file last_id of the current folder.
'use strict';

const fs = require('node:fs');
const { setTimeout: sleep } = require('node:timers/promises');
const { Client, DatabaseError } = require('pg');

// Prints the next photos, 1000 at most, and returns how many they are.
async function consume(client) {
  const last = fs.existsSync('last_id') ? fs.readFileSync('last_id', 'utf8') : '0';
  const { rows: [{ settled }] } = await client.query('SELECT insta5.settled_id() AS settled');
  const { rows: photos } = await client.query(
    'SELECT id, caption FROM insta5.photos WHERE id > $1 AND id <= $2 ORDER BY id LIMIT 1000', [last, settled]);
  for (const photo of photos) console.log(JSON.stringify(photo));
  const lastRead = photos.length === 1000 ? photos.at(-1).id : settled;
  // Never back: the settled ID is 0 after a RESTART of the sequence.
  if (BigInt(lastRead) > BigInt(last)) {
    // A rename, so that the file never has a part of an ID.
    fs.writeFileSync('last_id.new', lastRead, { flush: true });
    fs.renameSync('last_id.new', 'last_id');
  }
  return photos.length;
}

async function main() {
  for (;;) {
    const client = new Client();
    client.on('error', () => {}); // the next query fails with it
    try {
      await client.connect();
      for (;;) if (await consume(client) === 0) await sleep(200);
    } catch (error) {
      // The shard has moved (25006), the connection is lost, the server starts or stops: connect again. Other errors end the program.
      if (error instanceof DatabaseError && !/^(25006|08|40|53|55|57)/.test(error.code)) throw error;
      console.error(error.message);
      await sleep(1000);
    } finally {
      client.end().catch(() => {});
    }
  }
}

main();
