"""Whether one key made one signature: all that is asked of python-jose, and the only place that knows it.

Its `jwt.decode` would also choose the key, read the header and judge the claims, each more leniently than RFC 8725
asks; docs/adr/0011-tokens.md lists how. So it gets one prepared key, bytes and a signature.
"""

import logging
from collections.abc import Collection, Mapping

from jose import jwk
from jose.backends.base import Key

log = logging.getLogger("viaduct.auth")

_RSA = frozenset({"RS256", "RS384", "RS512"})
_OF_CURVE = {"P-256": "ES256", "P-384": "ES384", "P-521": "ES512"}
_SIGNATURE_BYTES = {"ES256": 64, "ES384": 96, "ES512": 132}
ALGORITHMS = _RSA | frozenset(_OF_CURVE.values())
_RSA_BITS = range(2048, 8193)


class VerifyingKey:
    """A public key with the algorithms it may be used for."""

    __slots__ = ("_keys", "algorithms")

    def __init__(self, keys: Mapping[str, Key]) -> None:
        self._keys = keys
        self.algorithms = frozenset(keys)

    def made(self, signature: bytes, signed: bytes, algorithm: str) -> bool:
        key = self._keys.get(algorithm)
        if key is None or len(signature) != _SIGNATURE_BYTES.get(algorithm, len(signature)):
            return False
        try:
            return key.verify(signed, signature) is True
        except Exception:  # whatever a library has against a signature, it is not verified
            log.debug("a signature could not be verified", exc_info=True)
            return False


def public_key(fields: Mapping[str, object], wanted: Collection[str]) -> VerifyingKey | None:
    """The key that a JWK describes (RFC 7517), for those of `wanted` that it can be used with; None where it can not.

    Raises:
        ValueError: it is no usable key.
    """
    if fields.get("use", "sig") != "sig" or "verify" not in _listed(fields.get("key_ops", ["verify"])):
        return None
    algorithms = _suited(fields) & frozenset(wanted)
    if "alg" in fields:
        algorithms &= {str(fields["alg"])}
    if not algorithms:
        return None
    names = ("kty", "n", "e") if fields["kty"] == "RSA" else ("kty", "crv", "x", "y")
    bare = {name: fields.get(name) for name in names}
    if not all(isinstance(value, str) for value in bare.values()):
        raise ValueError("a part of the key is missing")
    try:
        keys = {algorithm: jwk.construct(bare, algorithm) for algorithm in algorithms}
    except Exception as error:  # it is not documented what it raises
        raise ValueError(f"no key can be made of it: {type(error).__name__}") from error
    _check_size(keys)
    return VerifyingKey(keys)


def _suited(fields: Mapping[str, object]) -> frozenset[str]:
    match fields.get("kty"), fields.get("crv"):
        case "RSA", _:
            return _RSA
        case "EC", str() as curve if curve in _OF_CURVE:
            return frozenset({_OF_CURVE[curve]})
        case _:
            return frozenset()


def _listed(value: object) -> list[object]:
    return value if isinstance(value, list) else []


def _check_size(keys: Mapping[str, Key]) -> None:
    for key in keys.values():
        bits: int = vars(key)["prepared_key"].key_size
        if not (bits in _RSA_BITS or bits in (256, 384, 521)):
            raise ValueError(f"a key of {bits} bits")
