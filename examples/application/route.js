// From a name or an ID to its shard, and from the shard to a connection: the alias of PgBouncer.
'use strict';

const { createHash } = require('node:crypto');
const { setTimeout: sleep } = require('node:timers/promises');
const { Pool } = require('pg');

const SHARDS = 16; // never changes: names would be looked for elsewhere

// As snowflake_shard(id). Rows from before snowflake_attach() have stayed in shard 0, with numbers that hold no shard.
const shardOfId = (id) => (BigInt(id) < 2n ** 53n ? 0 : Number((BigInt(id) >> 10n) & 8191n));

// As ('x' || left(encode(sha256(convert_to(name, 'UTF8')), 'hex'), 16))::bit(64)::bigint.
const hashOfName = (name) => createHash('sha256').update(name, 'utf8').digest().readBigInt64BE();

// As snowflake_shard_for(hash, shards). % of JavaScript has the sign of the hash.
function shardOfName(name, shards = SHARDS) {
  const count = BigInt(shards);
  return Number(((hashOfName(name) % count) + count) % count);
}

class Router {
  // config is PgBouncer's, for Pool, without a database.
  constructor(config, patience = 30_000) {
    Object.assign(this, { config, patience, pools: new Map() });
  }

  pool(shard) {
    if (!this.pools.has(shard)) {
      const pool = new Pool({ ...this.config, database: `shard${shard}`, max: 4 });
      pool.on('error', () => {}); // of an idle connection that was lost: the pool has removed it
      pool.on('connect', (client) => client.on('error', () => {})); // of one in use: its query fails, too
      this.pools.set(shard, pool);
    }
    return this.pools.get(shard);
  }

  // Returns work(client), done in one transaction. A shard that has moved refuses writes on its old
  // server by SQLSTATE 25006. Nothing was written then, so the work is done again until the alias leads
  // to the new server. While an alias is paused, query() waits.
  async transaction(shard, work) {
    for (const deadline = Date.now() + this.patience; ; await sleep(50)) {
      const client = await this.pool(shard).connect();
      let broken;
      try {
        await client.query('BEGIN');
        const result = await work(client);
        await client.query('COMMIT');
        return result;
      } catch (error) {
        await client.query('ROLLBACK').catch((lost) => { broken = lost; });
        if (error.code !== '25006' || Date.now() > deadline) throw error;
      } finally {
        client.release(broken);
      }
    }
  }

  rows(shard, sql, values = []) {
    return this.transaction(shard, async (client) => (await client.query(sql, values)).rows);
  }

  end() {
    return Promise.all([...this.pools.values()].map((pool) => pool.end()));
  }
}

module.exports = { SHARDS, shardOfId, hashOfName, shardOfName, Router };
