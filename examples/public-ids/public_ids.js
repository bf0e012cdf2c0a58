// Public names of IDs: the ID encrypted with a secret key, as text. docs/public-ids.md explains it.
//
// node public_ids.js FILE checks the lines of vectors.txt, or of a file like it. If anything does not hold, the
// program says what, and exits with 1.
'use strict';

const { createCipheriv, createDecipheriv } = require('node:crypto');

class PublicIds {
  // keys: an object of versions, letters from a to z, and keys, Buffers of 24 bytes. The key of current makes names.
  constructor(keys, current) {
    for (const [version, key] of Object.entries(keys)) {
      if (!/^[a-z]$/.test(version) || key.length !== 24) {
        throw new Error(`key "${version}": a version is one letter from a to z, and a key has 24 bytes`);
      }
    }
    this.keys = new Map(Object.entries(keys));
    this.current = current;
  }

  // The ID is a string or a BigInt: a number of JavaScript is exact up to 2^53.
  nameOf(id) {
    if (typeof id === 'number') throw new Error('an ID is a string or a BigInt');
    const block = Buffer.alloc(8);
    block.writeBigInt64BE(BigInt(id));
    const cipher = createCipheriv('des-ede3-ecb', this.keys.get(this.current), null).setAutoPadding(false);
    return this.current + Buffer.concat([cipher.update(block), cipher.final()]).toString('base64url');
  }

  // The ID as a string; of a name that was not made with a key of these, some number.
  idOf(name) {
    if (name.length !== 12) throw new Error(`a public name has 12 characters, not ${name.length}`);
    if (!/^[a-z][A-Za-z0-9_-]{10}[AEIMQUYcgkosw048]$/.test(name)) throw new Error(`not a public name: "${name}"`);
    const key = this.keys.get(name[0]);
    if (!key) throw new Error(`no key of version "${name[0]}"`);
    const decipher = createDecipheriv('des-ede3-ecb', key, null).setAutoPadding(false);
    const block = Buffer.concat([decipher.update(name.slice(1), 'base64url'), decipher.final()]);
    return block.readBigInt64BE().toString();
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
