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
from cryptography.hazmat.primitives.ciphers import Cipher, modes

try:
    from cryptography.hazmat.decrepit.ciphers.algorithms import TripleDES
except ImportError:  # before version 43
    from cryptography.hazmat.primitives.ciphers.algorithms import TripleDES


class PublicIds:
    def __init__(self, keys, current):
        """keys: a dict of versions, letters from a to z, to keys of 24 bytes. The key of current makes names."""
        for version, key in keys.items():
            if not re.fullmatch("[a-z]", version) or len(key) != 24:
                raise ValueError(f'key "{version}": a version is one letter from a to z, and a key has 24 bytes')
        self.current = current
        self.ciphers = {version: Cipher(TripleDES(key), modes.ECB()) for version, key in keys.items()}

    def name_of(self, id):
        block = self.ciphers[self.current].encryptor().update(struct.pack(">q", id))
        return self.current + base64.urlsafe_b64encode(block).decode().rstrip("=")

    def id_of(self, name):
        """The ID; of a name that was not made with a key of these, some number."""
        if len(name) != 12:
            raise ValueError(f"a public name has 12 characters, not {len(name)}")
        if not re.fullmatch("[a-z][A-Za-z0-9_-]{10}[AEIMQUYcgkosw048]", name):
            raise ValueError(f'not a public name: "{name}"')
        if name[0] not in self.ciphers:
            raise ValueError(f'no key of version "{name[0]}"')
        block = base64.urlsafe_b64decode(name[1:] + "=")
        return struct.unpack(">q", self.ciphers[name[0]].decryptor().update(block))[0]


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
