// Public names of IDs: the ID encrypted with a secret key, as text. docs/public-ids.md explains it.
//
// node public_ids.js FILE checks the lines of vectors.txt, or of a file like it. If anything does not hold, the
// program says what, and exits with 1.
'use strict';

const { createCipheriv, createDecipheriv } = require('node:crypto');

// By the length of a key: its cipher, and the bytes of a block. Behind the 8 of the ID are zeros.
const CIPHERS = { 32: ['aes-256-ecb', 16], 24: ['des-ede3-ecb', 8] };

function checkKey(version, key) {
  if (!/^[a-z]$/.test(version) || !(key.length in CIPHERS)) {
    throw new Error(
      `key "${version}": a version is one letter from a to z, and a key has 32 bytes (AES) or 24 (3DES)`);
  }
  const parts = Buffer.from(key.map((byte) => byte & 0xfe)).toString('hex').match(/.{16}/g);
  if (new Set(parts).size < parts.length) { // 3DES would be DES; random keys have none
    throw new Error(`key "${version}" is weak: two of its parts of 8 bytes are equal`);
  }
}

class PublicIds {
  // keys: an object of versions, letters from a to z, and keys, Buffers of 32 bytes (AES) or 24 (3DES). The key of
  // current makes names.
  constructor(keys, current) {
    for (const [version, key] of Object.entries(keys)) checkKey(version, key);
    this.keys = new Map(Object.entries(keys));
    this.current = current;
  }

  // The ID is a string or a BigInt: a number of JavaScript is exact up to 2^53.
  nameOf(id) {
    if (typeof id === 'number') throw new Error('an ID is a string or a BigInt');
    const key = this.keys.get(this.current);
    const [algorithm, size] = CIPHERS[key.length];
    const block = Buffer.alloc(size);
    block.writeBigInt64BE(BigInt(id));
    const cipher = createCipheriv(algorithm, key, null).setAutoPadding(false);
    return this.current + Buffer.concat([cipher.update(block), cipher.final()]).toString('base64url');
  }

  // The ID as a string. A name that was not made with a key of these is an error with AES, and some number with 3DES.
  idOf(name) {
    if (name.length !== 23 && name.length !== 12) {
      throw new Error(`a public name has 23 characters, or 12 with 3DES, not ${name.length}`);
    }
    if (!/^[a-z]([A-Za-z0-9_-]{21}[AQgw]|[A-Za-z0-9_-]{10}[AEIMQUYcgkosw048])$/.test(name)) {
      throw new Error(`not a public name: "${name}"`);
    }
    const key = this.keys.get(name[0]);
    if (!key) throw new Error(`no key of version "${name[0]}"`);
    const [algorithm, size] = CIPHERS[key.length];
    const encrypted = Buffer.from(name.slice(1), 'base64url');
    if (encrypted.length === size) {
      const decipher = createDecipheriv(algorithm, key, null).setAutoPadding(false);
      const block = Buffer.concat([decipher.update(encrypted), decipher.final()]);
      if (block.subarray(8).every((byte) => byte === 0)) return block.readBigInt64BE().toString();
    }
    throw new Error(`not made with key "${name[0]}": "${name}"`);
  }
}

module.exports = { PublicIds };

function refusal(version, key, name) {
  try {
    return `${name} is ID ${new PublicIds({ [version]: key }, version).idOf(name)}`;
  } catch (error) {
    return error.message;
  }
}

function main(file) {
  const assert = require('node:assert/strict');
  const { readFileSync } = require('node:fs');
  const vectors = readFileSync(file, 'utf8').split('\n').filter((line) => line && !line.startsWith('#'))
    .map((line) => line.match(/^(\S+) (\S+) (\S+) (\S+) (.*)$/).slice(1));
  const made = vectors.filter(([kind]) => kind === 'made');
  const keys = Object.fromEntries(made.map(([, version, key]) => [version, Buffer.from(key, 'hex')]));
  for (const [kind, version, key, value, result] of vectors) {
    if (kind === 'made') {
      assert.equal(new PublicIds(keys, version).nameOf(value), result);
      assert.equal(new PublicIds(keys, version).idOf(result), value);
    } else {
      assert.equal(refusal(version, Buffer.from(key, 'hex'), value), result);
    }
  }
  console.log(`node ${process.versions.node}, OpenSSL ${process.versions.openssl}: ${vectors.length} vectors hold`);
}

if (require.main === module) main(process.argv[2]);
