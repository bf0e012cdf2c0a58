#!/usr/bin/env python3
"""Public names of IDs: the ID encrypted with a secret key, as text. docs/public-ids.md explains it.

Python's standard library has no ciphers: this needs the package cryptography (Debian: python3-cryptography).

python3 public_ids.py FILE checks the lines of vectors.txt, or of a file like it. If anything does not hold, the
program says what, and exits with 1.
"""

import base64
import re
import struct
import sys

import cryptography
from cryptography.hazmat.primitives.ciphers import Cipher, algorithms, modes

try:
    from cryptography.hazmat.decrepit.ciphers.algorithms import TripleDES
except ImportError:  # before version 43
    from cryptography.hazmat.primitives.ciphers.algorithms import TripleDES

# By the length of a key: its cipher, and the zeros that fill up the block behind the ID.
CIPHERS = {32: (algorithms.AES, bytes(8)), 24: (TripleDES, b"")}


def check_key(version, key):
    if not re.fullmatch("[a-z]", version) or len(key) not in CIPHERS:
        raise ValueError(f'key "{version}": a version is one letter from a to z, '
                         "and a key has 32 bytes (AES) or 24 (3DES)")
    parts = [bytes(byte & 0xFE for byte in key[i:i + 8]) for i in range(0, len(key), 8)]
    if len(set(parts)) < len(parts):  # 3DES would be DES; random keys have none
        raise ValueError(f'key "{version}" is weak: two of its parts of 8 bytes are equal')


class PublicIds:
    def __init__(self, keys, current):
        """keys: a dict of versions, letters from a to z, to keys of 32 bytes (AES) or 24 (3DES).

        The key of current makes names.
        """
        self.current = current
        self.ciphers = {}
        for version, key in keys.items():
            check_key(version, key)
            algorithm, zeros = CIPHERS[len(key)]
            self.ciphers[version] = Cipher(algorithm(key), modes.ECB()), zeros

    def name_of(self, id):
        cipher, zeros = self.ciphers[self.current]
        block = cipher.encryptor().update(struct.pack(">q", id) + zeros)
        return self.current + base64.urlsafe_b64encode(block).decode().rstrip("=")

    def id_of(self, name):
        """The ID. A name that was not made with a key of these is an error with AES, and some number with 3DES."""
        if len(name) not in (23, 12):
            raise ValueError(f"a public name has 23 characters, or 12 with 3DES, not {len(name)}")
        if not re.fullmatch("[a-z]([A-Za-z0-9_-]{21}[AQgw]|[A-Za-z0-9_-]{10}[AEIMQUYcgkosw048])", name):
            raise ValueError(f'not a public name: "{name}"')
        if name[0] not in self.ciphers:
            raise ValueError(f'no key of version "{name[0]}"')
        cipher, zeros = self.ciphers[name[0]]
        block = base64.urlsafe_b64decode(name[1:] + "==")
        if len(block) == 8 + len(zeros):
            block = cipher.decryptor().update(block)
            if block[8:] == zeros:
                return struct.unpack(">q", block[:8])[0]
        raise ValueError(f'not made with key "{name[0]}": "{name}"')


def check(wanted, got):
    if wanted != got:
        sys.exit(f"python: {got} in place of {wanted}")


def refusal(version, key, name):
    try:
        return f"{name} is ID {PublicIds({version: key}, version).id_of(name)}"
    except ValueError as error:
        return str(error)


def main(file):
    with open(file, encoding="utf-8") as lines:
        vectors = [line.split(maxsplit=4) for line in lines if line.strip() and not line.startswith("#")]
    keys = {version: bytes.fromhex(key) for kind, version, key, _, _ in vectors if kind == "made"}
    for kind, version, key, value, result in vectors:
        result = result.rstrip("\n")
        if kind == "made":
            check(result, PublicIds(keys, version).name_of(int(value)))
            check(int(value), PublicIds(keys, version).id_of(result))
        else:
            check(result, refusal(version, bytes.fromhex(key), value))
    print(f"python {sys.version.split()[0]}, cryptography {cryptography.__version__}: {len(vectors)} vectors hold")


if __name__ == "__main__":
    main(sys.argv[1])
