"""An issuer of tokens that signs whatever it is asked to, and can be put behind a socket of its own."""

import json
import threading
import time
from base64 import urlsafe_b64encode
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import parse_qs

from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec, padding, rsa
from cryptography.hazmat.primitives.asymmetric.utils import decode_dss_signature

Json = dict[str, Any]

ISSUER = "https://idp.example.com"
AUDIENCE = "https://mcp.example.com"


def b64(data: bytes) -> str:
    return urlsafe_b64encode(data).rstrip(b"=").decode()


def _int(number: int) -> str:
    return b64(number.to_bytes((number.bit_length() + 7) // 8, "big"))


class RsaKey:
    def __init__(self, kid: str, bits: int = 2048) -> None:
        self.kid = kid
        self.private = rsa.generate_private_key(public_exponent=65537, key_size=bits)

    def jwk(self, **more: Any) -> Json:
        numbers = self.private.public_key().public_numbers()
        return {"kty": "RSA", "kid": self.kid, "n": _int(numbers.n), "e": _int(numbers.e), **more}

    def sign(self, signed: bytes, digest: hashes.HashAlgorithm | None = None) -> bytes:
        return self.private.sign(signed, padding.PKCS1v15(), digest or hashes.SHA256())


class EcKey:
    def __init__(self, kid: str) -> None:
        self.kid = kid
        self.private = ec.generate_private_key(ec.SECP256R1())

    def jwk(self, **more: Any) -> Json:
        numbers = self.private.public_key().public_numbers()
        x, y = (b64(number.to_bytes(32, "big")) for number in (numbers.x, numbers.y))
        return {"kty": "EC", "crv": "P-256", "kid": self.kid, "x": x, "y": y, **more}

    def sign(self, signed: bytes) -> bytes:
        r, s = decode_dss_signature(self.private.sign(signed, ec.ECDSA(hashes.SHA256())))
        return r.to_bytes(32, "big") + s.to_bytes(32, "big")


KEY = RsaKey("one")
OTHER_KEY = RsaKey("two")
EC_KEY = EcKey("curve")


def claims(now: float | None = None, **more: Any) -> Json:
    """A good token's; None leaves one out."""
    at = int(time.time() if now is None else now)
    usual = {
        "iss": ISSUER,
        "sub": "ada",
        "aud": AUDIENCE,
        "client_id": "app",
        "iat": at,
        "exp": at + 300,
        "scope": "read write",
    }
    return {name: value for name, value in (usual | more).items() if value is not None}


def header(**more: Any) -> Json:
    usual = {"alg": "RS256", "typ": "at+jwt", "kid": "one"}
    return {name: value for name, value in (usual | more).items() if value is not None}


def compact(head: Json | bytes, payload: Json | bytes, key: RsaKey | EcKey = KEY) -> str:
    parts = [part if isinstance(part, bytes) else json.dumps(part).encode() for part in (head, payload)]
    signed = ".".join(map(b64, parts))
    return f"{signed}.{b64(key.sign(signed.encode()))}"


def token(head: Json | None = None, key: RsaKey | EcKey = KEY, **more: Any) -> str:
    return compact(head or header(kid=key.kid), claims(**more), key)


class Issuer:
    """What it answers, and what it was asked. `hold` keeps it from answering until it is set."""

    def __init__(self, port: int) -> None:
        self.url = f"http://127.0.0.1:{port}"
        self.keys: list[Json] = [KEY.jwk()]
        self.status = 200
        self.headers: dict[str, str] = {}
        self.active: dict[str, Json] = {}
        """By token, what introspection says beside `active`."""
        self.raw: bytes | None = None
        """Instead of any answer."""
        self.hold = threading.Event()
        self.hold.set()
        self.asked: list[str] = []
        self.forms: list[dict[str, list[str]]] = []
        self.authorizations: list[str | None] = []

    def claims(self, **more: Any) -> Json:
        return claims(**{"iss": self.url, **more})

    def token(self, key: RsaKey | EcKey = KEY, **more: Any) -> str:
        return compact(header(kid=key.kid), self.claims(**more), key)

    def answer(self, path: str, form: dict[str, list[str]]) -> tuple[int, bytes]:
        if self.raw is not None:
            return self.status, self.raw
        if path == "/introspect":
            said = self.active.get(form["token"][0])
            return self.status, json.dumps({"active": False} if said is None else {"active": True, **said}).encode()
        if path == "/jwks":
            return self.status, json.dumps({"keys": self.keys}).encode()
        if path == "/.well-known/openid-configuration":
            return self.status, json.dumps({"issuer": self.url, "jwks_uri": f"{self.url}/jwks"}).encode()
        return 404, b"{}"


@contextmanager
def issuing() -> Iterator[Issuer]:
    class Asked(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_GET(self) -> None:
            length = int(self.headers.get("content-length", "0"))
            form = parse_qs(self.rfile.read(length).decode())
            issuer.asked.append(self.path)
            issuer.authorizations.append(self.headers.get("authorization"))
            if form:
                issuer.forms.append(form)
            issuer.hold.wait(20)
            status, body = issuer.answer(self.path, form)
            self.send_response(status)
            for name, value in issuer.headers.items():
                self.send_header(name, value)
            self.send_header("content-length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        do_POST = do_GET  # noqa: N815 - the library looks for it

        def log_message(self, *_: Any) -> None:
            """Nobody wants to read it."""

    class Server(ThreadingHTTPServer):
        daemon_threads = True
        block_on_close = False

        def handle_error(self, *_: Any) -> None:
            """A client that does not wait for the answer is what some tests are about."""

    with Server(("127.0.0.1", 0), Asked) as server:
        issuer = Issuer(server.server_port)
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True)
        thread.start()
        try:
            yield issuer
        finally:
            issuer.hold.set()
            server.shutdown()
            thread.join(5)
