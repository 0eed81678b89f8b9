"""Only who knows a session's id can read what is kept of it.

The id is a secret of the client's and of ours, of 256 random bits, and is itself not kept: a hash of it names the
session, another one seals it. So whoever has the file has names of principals and servers, and times.
"""

import os
from hashlib import sha256

from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives.ciphers.aead import AESGCM

_NONCE_BYTES = 12


class Unreadable(Exception):
    """It was not sealed by this key, or not for this place."""


class Key:
    """Of one session. `place` is where a sealed value is: moved to another one, it cannot be unsealed."""

    def __init__(self, ident: str) -> None:
        self.name = name_of(ident)
        self._cipher = AESGCM(sha256(b"seal\0" + ident.encode()).digest())

    def seal(self, value: bytes, place: bytes) -> bytes:
        nonce = os.urandom(_NONCE_BYTES)
        return nonce + self._cipher.encrypt(nonce, value, self.name + place)

    def unseal(self, sealed: bytes, place: bytes) -> bytes:
        """
        Raises:
            Unreadable: whoever wrote it had another key, or wrote it elsewhere.
        """
        try:
            return self._cipher.decrypt(sealed[:_NONCE_BYTES], sealed[_NONCE_BYTES:], self.name + place)
        except (InvalidTag, ValueError) as wrong:
            raise Unreadable from wrong


def name_of(ident: str) -> bytes:
    """What a session is called where its id must not be."""
    return sha256(b"name\0" + ident.encode()).digest()
