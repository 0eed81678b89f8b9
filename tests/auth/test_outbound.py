"""Where a fetch leads, and what it takes for an answer."""

import asyncio
import socket
import subprocess
import sys
from collections.abc import Iterator
from ipaddress import ip_address
from typing import Any

import pytest

from app.auth.issuers import JwksSource, well_known
from app.auth.outbound import Fetched, FetchFailed, Form, Outbound, is_public
from tests.support.issuer import Issuer, issuing


@pytest.fixture
def issuer() -> Iterator[Issuer]:
    with issuing() as running:
        yield running


def fetched(url: str, form: Form | None = None, allowed: tuple[str, ...] = ("127.0.0.1",), **more: Any) -> Fetched:
    return asyncio.run(Outbound(allowed, **more).fetch(url, form))


def failed(url: str, allowed: tuple[str, ...] = ("127.0.0.1",), **more: Any) -> str:
    with pytest.raises(FetchFailed) as failure:
        fetched(url, None, allowed, **more)
    return str(failure.value)


@pytest.mark.parametrize(
    "address",
    [
        "127.0.0.1",
        "10.0.0.1",
        "172.16.0.1",
        "192.168.1.1",
        "169.254.169.254",
        "100.64.0.1",
        "0.0.0.0",
        "224.0.0.1",
        "::1",
        "::",
        "fe80::1",
        "fc00::1",
        "ff02::1",
        "::ffff:127.0.0.1",
        "::ffff:10.0.0.1",
        "64:ff9b::7f00:1",
        "64:ff9b::a9fe:a9fe",
        "2002:7f00:1::",
        "2001:0:53aa:64c::",
        "255.255.255.255",
        "192.0.2.1",
        "::127.0.0.1",
        "::ffff:0:127.0.0.1",
        "64:ff9b:1::7f00:1",
        "fec0::1",
    ],
)
def test_a_private_address_is_private_in_every_disguise(address: str) -> None:
    assert not is_public(ip_address(address))


@pytest.mark.parametrize("address", ["8.8.8.8", "2606:4700::1111", "::ffff:8.8.8.8", "64:ff9b::808:808"])
def test_a_public_address_is_public(address: str) -> None:
    assert is_public(ip_address(address))


@pytest.mark.parametrize("host", ["127.0.0.1", "localhost", "0x7f.1", "2130706433", "[::ffff:127.0.0.1]", "127.1"])
def test_no_private_host_is_asked_unless_it_is_allowed(issuer: Issuer, host: str) -> None:
    url = issuer.url.replace("127.0.0.1", host)
    assert "private address" in failed(f"{url}/jwks", ())
    assert issuer.asked == []


@pytest.mark.parametrize("port", [0, 65_536, 99_999])
def test_a_port_that_cannot_be_is_a_failure_like_others(port: int) -> None:
    assert failed(f"http://127.0.0.1:{port}/jwks") == "not a URL of HTTP"


def test_a_host_with_one_private_address_among_others_is_not_asked(
    issuer: Issuer, monkeypatch: pytest.MonkeyPatch
) -> None:
    def rebinding(_host: object, port: int, **_: Any) -> list[Any]:
        return [(socket.AF_INET, socket.SOCK_STREAM, 6, "", (address, port)) for address in ("8.8.8.8", "127.0.0.1")]

    monkeypatch.setattr("socket.getaddrinfo", rebinding)
    assert "private address" in failed("https://rebinding.example/jwks", ())


def test_a_host_is_resolved_once_and_asked_where_that_led(issuer: Issuer, monkeypatch: pytest.MonkeyPatch) -> None:
    names: list[object] = []

    def resolving(host: object, port: int, **_: Any) -> list[Any]:
        names.append(host)
        return [(socket.AF_INET, socket.SOCK_STREAM, 6, "", ("127.0.0.1", port))]

    monkeypatch.setattr("socket.getaddrinfo", resolving)
    port = issuer.url.rpartition(":")[2]
    assert fetched(f"http://idp.example:{port}/jwks").status == 200
    assert "idp.example" in names
    assert all(name in ("idp.example", "127.0.0.1", b"127.0.0.1") for name in names)


NAMELESS = """
import asyncio, socket, threading, time
from app.auth.outbound import FetchFailed, Outbound

def silent(host, *_args, **_more):
    asked.append(host)
    threading.Event().wait()

async def tried(host):
    try:
        await outbound.fetch(f"https://{host}/")
    except FetchFailed as wrong:
        return str(wrong)

async def main():
    told = await asyncio.gather(*(tried(host) for host in 100 * ["slow.example"] + ["other.example"]))
    print(*sorted(set(told)), *sorted(asked), await asyncio.to_thread(lambda: "served"))

asked, outbound, socket.getaddrinfo = [], Outbound(seconds=0.2), silent
asyncio.run(main())
"""


def test_a_name_that_is_looked_up_for_ever_holds_up_nothing_else_nor_the_end() -> None:
    command = [sys.executable, "-c", NAMELESS]
    run = subprocess.run(command, capture_output=True, text=True, check=True, timeout=20)
    assert run.stdout == "no answer within 0.2 s other.example slow.example served\n"
    assert run.stderr == ""


def test_plain_http_is_for_allowed_hosts_only() -> None:
    assert "plain HTTP" in failed("http://8.8.8.8/jwks")


@pytest.mark.parametrize(
    "url", ["file:///etc/passwd", "ftp://example.com/x", "https://", "x", "http://[::1", "https://a b/"]
)
def test_what_is_no_url_of_http_is_not_fetched(url: str) -> None:
    assert failed(url)


def test_a_redirect_is_an_answer_and_nobody_follows_it(issuer: Issuer) -> None:
    issuer.status, issuer.headers = 302, {"location": f"{issuer.url}/elsewhere"}
    assert fetched(f"{issuer.url}/jwks").status == 302
    assert issuer.asked == ["/jwks"]


def test_an_answer_has_a_size(issuer: Issuer) -> None:
    issuer.raw = b"x" * 1001
    assert failed(f"{issuer.url}/jwks", bytes_max=1000) == "the answer has more than 1000 bytes"
    issuer.raw = b"x" * 1000
    assert len(fetched(f"{issuer.url}/jwks", bytes_max=1000).body) == 1000


def test_an_answer_has_its_time(issuer: Issuer) -> None:
    issuer.hold.clear()
    assert failed(f"{issuer.url}/jwks", seconds=0.2) == "no answer within 0.2 s"


def test_a_compressed_answer_could_be_of_any_size(issuer: Issuer) -> None:
    issuer.headers = {"content-encoding": "gzip"}
    assert "compressed" in failed(f"{issuer.url}/jwks")


def test_nobody_listening_is_a_failure_like_others() -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        assert failed(f"http://127.0.0.1:{taken.getsockname()[1]}/") == "ConnectError"


def test_proxies_of_the_environment_are_not_asked(issuer: Issuer, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("HTTP_PROXY", "http_proxy", "ALL_PROXY", "all_proxy"):
        monkeypatch.setenv(name, "http://127.0.0.1:9")
    assert fetched(f"{issuer.url}/jwks").status == 200


def test_a_form_is_posted_in_the_name_of_who_asks(issuer: Issuer) -> None:
    fetched(f"{issuer.url}/introspect", Form({"token": "a b"}, "me", "se:cret"))
    assert issuer.forms == [{"token": ["a b"]}]
    assert issuer.authorizations == ["Basic bWU6c2U6Y3JldA=="]


# Where keys are.


def source(issuer: Issuer, said: str | None = None, jwks_uri: str | None = None) -> Fetched:
    return asyncio.run(JwksSource(said or issuer.url, jwks_uri, Outbound(["127.0.0.1"]))())


def test_keys_are_where_the_operator_says(issuer: Issuer) -> None:
    assert source(issuer, "https://idp.example.com", f"{issuer.url}/jwks").status == 200
    assert issuer.asked == ["/jwks"]


def test_keys_are_where_the_metadata_says(issuer: Issuer) -> None:
    assert source(issuer).status == 200
    assert issuer.asked == ["/.well-known/oauth-authorization-server", "/.well-known/openid-configuration", "/jwks"]


def test_the_metadata_of_another_issuer_is_not_believed(issuer: Issuer) -> None:
    with pytest.raises(FetchFailed, match="set jwksUri"):
        source(issuer, f"{issuer.url}/")


def test_the_path_of_an_issuer_goes_behind_the_well_known_part_or_before_it() -> None:
    assert well_known("https://idp.example.com/realms/x") == [
        "https://idp.example.com/.well-known/oauth-authorization-server/realms/x",
        "https://idp.example.com/.well-known/openid-configuration/realms/x",
        "https://idp.example.com/realms/x/.well-known/openid-configuration",
    ]
