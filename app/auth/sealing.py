"""State that passes through a client and must come back as it went out.

A seal binds it to whoever it was given to, to what it was given for and to a time (2026-07-28, basic/patterns/mrtr:
"Server Requirements"). What it is bound to is not in it, only in its HMAC.
"""

import hmac
import secrets
from base64 import urlsafe_b64decode, urlsafe_b64encode
from binascii import Error
from collections.abc import Sequence

from msgspec import DecodeError, Struct
from msgspec.json import Decoder, Encoder

_MAC_BYTES = 32


class Sealed(Struct, array_like=True, frozen=True):
    """`round` counts what was asked; `expires_at` is in seconds of the clock that the caller keeps."""

    exchange: str
    round: int
    expires_at: float


_encoder = Encoder()
_decoder = Decoder(Sealed)


class Sealer:
    """The key lives as long as this object: what it sealed is of no use to another gateway, nor after a restart."""

    def __init__(self) -> None:
        self._key = secrets.token_bytes(32)

    def seal(self, state: Sealed, bound_to: Sequence[bytes]) -> str:
        body = _encoder.encode(state)
        return urlsafe_b64encode(self._mac(body, bound_to) + body).decode()

    def unseal(self, text: str, bound_to: Sequence[bytes]) -> Sealed | None:
        """None for what this key did not seal for exactly this."""
        try:
            raw = urlsafe_b64decode(text.encode("ascii"))
        except (UnicodeEncodeError, Error):
            return None
        mac, body = raw[:_MAC_BYTES], raw[_MAC_BYTES:]
        if not hmac.compare_digest(mac, self._mac(body, bound_to)) or not body:
            return None
        # Base64 has several spellings of one value; only ours is the one that went out.
        if urlsafe_b64encode(raw).decode() != text:
            return None
        try:
            return _decoder.decode(body)
        except DecodeError:
            return None

    def _mac(self, body: bytes, bound_to: Sequence[bytes]) -> bytes:
        """Each part with its length, so that no two lists of parts have one MAC."""
        mac = hmac.new(self._key, digestmod="sha256")
        for part in (*bound_to, body):
            mac.update(len(part).to_bytes(8, "big"))
            mac.update(part)
        return mac.digest()
