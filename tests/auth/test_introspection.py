"""What an introspection endpoint says, and what is made of its not saying anything."""

import asyncio
import base64
from collections.abc import Iterator

import pytest

from app.auth.claims import Expected, spellings
from app.auth.introspection import Endpoint, Introspection
from app.auth.outbound import Outbound
from app.auth.principal import Principal
from app.auth.verdicts import BadToken, CannotVerify
from tests.support.issuer import AUDIENCE, Issuer, Json, issuing

NOW = 1000.0


@pytest.fixture
def issuer() -> Iterator[Issuer]:
    with issuing() as running:
        yield running


def asking(issuer: Issuer, now: float = NOW, **more: int) -> Introspection:
    endpoint = Endpoint(f"{issuer.url}/introspect", "via duct", "s:e/cret", **more)
    expected = Expected(issuer.url, spellings([AUDIENCE]))
    return Introspection(endpoint, expected, Outbound(["127.0.0.1"], seconds=1), lambda: now, lambda: NOW)


def verified(issuer: Issuer, **said: object) -> Principal:
    issuer.active["opaque"] = {"sub": "ada", "aud": AUDIENCE, "client_id": "app", "scope": "read"} | said
    return asyncio.run(asking(issuer).verify("opaque"))


def test_an_active_token_names_its_principal(issuer: Issuer) -> None:
    principal = verified(issuer, exp=NOW + 60)
    assert (principal.name, principal.client, principal.issuer) == ("ada", "app", issuer.url)
    assert (principal.scopes, principal.expires_at) == ({"read"}, NOW + 90)
    assert issuer.forms == [{"token": ["opaque"], "token_type_hint": ["access_token"]}]


def test_we_ask_as_ourselves_with_id_and_secret_encoded_like_a_form(issuer: Issuer) -> None:
    verified(issuer)
    (said,) = issuer.authorizations
    assert said is not None
    assert base64.b64decode(said.removeprefix("Basic ")) == b"via+duct:s%3Ae%2Fcret"


@pytest.mark.parametrize(
    ("said", "why"),
    [
        ({"aud": None}, "wrong_audience"),
        ({"aud": "https://other.example"}, "wrong_audience"),
        ({"sub": None}, "no_subject"),
        ({"iss": "https://other.example"}, "wrong_issuer"),
        ({"exp": NOW - 31}, "expired"),
        ({"nbf": NOW + 31}, "not_yet_valid"),
        ({"token_type": "refresh_token"}, "wrong_type"),
        ({"exp": "never"}, "bad_exp"),
    ],
)
def test_an_active_token_that_is_not_for_us_or_not_for_now_is_refused(issuer: Issuer, said: Json, why: str) -> None:
    with pytest.raises(BadToken) as bad:
        verified(issuer, **said)
    assert bad.value.cause == why


def test_a_token_that_is_not_active_is_refused(issuer: Issuer) -> None:
    with pytest.raises(BadToken) as bad:
        asyncio.run(asking(issuer).verify("unknown"))
    assert bad.value.cause == "inactive"


@pytest.mark.parametrize(
    "raw",
    [
        b"",
        b"{}",
        b"[]",
        b"null",
        b'{"active":"true"}',
        b'{"active":1}',
        b'{"active":null}',
        b'{"active":false,"active":true}',
        b"<html>",
    ],
)
def test_an_answer_that_does_not_say_is_the_endpoints_failure(issuer: Issuer, raw: bytes) -> None:
    issuer.raw = raw
    with pytest.raises(CannotVerify):
        asyncio.run(asking(issuer).verify("opaque"))


@pytest.mark.parametrize("status", [302, 400, 401, 500, 503])
def test_so_is_an_answer_of_another_status(issuer: Issuer, status: int) -> None:
    issuer.status = status
    with pytest.raises(CannotVerify):
        asyncio.run(asking(issuer).verify("opaque"))


def test_an_endpoint_that_does_not_answer_is_left_alone_for_a_while(issuer: Issuer) -> None:
    now = NOW

    async def run() -> None:
        nonlocal now
        introspection = Introspection(
            Endpoint(f"{issuer.url}/introspect", "a", "b"),
            Expected(issuer.url, frozenset()),
            Outbound(["127.0.0.1"]),
            lambda: now,
        )
        issuer.status = 500
        for _ in range(10):
            with pytest.raises(CannotVerify):
                await introspection.verify("opaque")
        assert len(issuer.asked) == 3
        issuer.status, now = 200, NOW + 5
        with pytest.raises(BadToken):
            await introspection.verify("opaque")

    asyncio.run(run())


@pytest.mark.parametrize("status", [400, 403, 413])
def test_tokens_that_the_endpoint_objects_to_do_not_keep_it_from_being_asked_about_others(
    issuer: Issuer, status: int
) -> None:
    async def run() -> None:
        introspection = asking(issuer)
        issuer.status = status
        for _ in range(10):
            with pytest.raises(CannotVerify):
                await introspection.verify("../../etc/passwd")
        issuer.status = 200
        with pytest.raises(BadToken):
            await introspection.verify("opaque")

    asyncio.run(run())


def test_a_few_are_asked_about_at_once_and_the_rest_of_a_crowd_is_told_to_come_again(issuer: Issuer) -> None:
    issuer.hold.clear()

    async def run() -> list[object]:
        introspection = asking(issuer, at_once=2, waiting_max=5)
        asked = [asyncio.ensure_future(introspection.verify(f"token-{number}")) for number in range(8)]
        done, _ = await asyncio.wait(asked, timeout=0.3)
        assert (len(done), len(issuer.asked)) == (3, 2)
        issuer.hold.set()
        return await asyncio.gather(*asked, return_exceptions=True)

    outcomes = asyncio.run(run())
    assert [type(outcome) for outcome in outcomes].count(CannotVerify) == 3
    assert [type(outcome) for outcome in outcomes].count(BadToken) == 5


def test_a_crowd_of_strangers_does_not_keep_those_who_are_known_from_their_turn(issuer: Issuer) -> None:
    issuer.hold.clear()
    issuer.active["opaque"] = {"sub": "ada", "aud": AUDIENCE}

    async def run() -> None:
        introspection = asking(issuer, at_once=1, waiting_max=5)
        strangers = [asyncio.ensure_future(introspection.verify(f"token-{number}")) for number in range(8)]
        await asyncio.wait(strangers, timeout=0.3)
        known = asyncio.ensure_future(introspection.verify("opaque", is_known=True))
        await asyncio.sleep(0)
        issuer.hold.set()
        assert (await known).name == "ada"
        await asyncio.gather(*strangers, return_exceptions=True)

    asyncio.run(run())
    assert [form["token"][0] for form in issuer.forms][:3] == ["token-0", "opaque", "token-1"]


def test_who_stops_waiting_leaves_the_turn_to_the_next(issuer: Issuer) -> None:
    issuer.hold.clear()

    async def run() -> None:
        introspection = asking(issuer, at_once=1, waiting_max=3)
        asked = [asyncio.ensure_future(introspection.verify(f"token-{number}")) for number in range(3)]
        await asyncio.wait(asked, timeout=0.3)
        asked[1].cancel()
        await asyncio.wait([asked[1]])
        later = asyncio.ensure_future(introspection.verify("token-3"))
        await asyncio.sleep(0)
        issuer.hold.set()
        told = await asyncio.gather(asked[0], asked[2], later, return_exceptions=True)
        assert [type(each) for each in told] == [BadToken] * 3

    asyncio.run(run())
    assert [form["token"][0] for form in issuer.forms] == ["token-0", "token-2", "token-3"]
