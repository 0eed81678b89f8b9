"""What passes as an access token, and all that does not: of the second, python-jose alone would let most pass."""

import asyncio
import json
import time
from typing import Any

import pytest
from cryptography.hazmat.primitives import hashes, hmac, serialization
from hypothesis import assume, given
from hypothesis import strategies as st

from app.auth.claims import Expected, admitted, spellings
from app.auth.compact import parse
from app.auth.jwks import KeySet, Patience
from app.auth.jwt import JwtRules, JwtVerifier
from app.auth.outbound import Fetched
from app.auth.principal import Principal
from app.auth.verdicts import BadToken
from tests.support.issuer import (
    AUDIENCE,
    EC_KEY,
    ISSUER,
    KEY,
    OTHER_KEY,
    EcKey,
    Json,
    RsaKey,
    b64,
    claims,
    compact,
    header,
)

NOW = 1_800_000_000.0
EXPECTED = Expected(ISSUER, spellings([AUDIENCE]), leeway=30)
GOOD = compact(header(), claims(NOW))
WEAK_KEY = RsaKey("one", 1024)


def verified(presented: str, *keys: Json, rules: JwtRules | None = None, now: float = NOW) -> Principal:
    async def fetch() -> Fetched:
        return Fetched(200, json.dumps({"keys": list(keys) or [KEY.jwk()]}).encode())

    async def verify() -> Principal:
        algorithms = (rules or JwtRules(EXPECTED)).algorithms
        key_set = KeySet(ISSUER, algorithms, fetch, Patience())
        return await JwtVerifier(rules or JwtRules(EXPECTED), key_set, lambda: now).verify(parse(presented))

    return asyncio.run(verify())


def cause(presented: str, *keys: Json, **more: Any) -> str:
    with pytest.raises(BadToken) as bad:
        verified(presented, *keys, **more)
    return bad.value.cause


def test_a_good_token_names_its_principal() -> None:
    assert verified(GOOD) == Principal("ada", frozenset({"read", "write"}), NOW + 330, ISSUER, "app", None, claims(NOW))


def test_principals_differ_by_issuer_subject_and_client_and_from_every_static_token() -> None:
    keys = {
        Principal(name, frozenset(), None, issuer, client).key
        for name in ("a", "b")
        for issuer in (None, "x", "y")
        for client in ("", "c")
    }
    assert len(keys) == 2 + 8
    named_alike = Principal(f"{ISSUER} ada app", frozenset())
    assert named_alike.key != Principal("ada", frozenset(), None, ISSUER, "app").key


def bare(**more: Any) -> str:
    return compact(header(), claims(NOW, **more))


@pytest.mark.parametrize(
    ("presented", "why"),
    [
        (bare(exp=None), "no_expiry"),
        (bare(aud=None), "wrong_audience"),
        (bare(aud=[]), "wrong_audience"),
        (bare(aud="https://staging.example.com"), "wrong_audience"),
        (bare(aud=[AUDIENCE, 5]), "wrong_audience"),
        (bare(aud=AUDIENCE + "/servers"), "wrong_audience"),
        (bare(iss=None), "wrong_issuer"),
        (bare(iss=ISSUER + "/"), "wrong_issuer"),
        (bare(iss=[ISSUER]), "wrong_issuer"),
        (bare(sub=None), "no_subject"),
        (bare(sub=""), "no_subject"),
        (bare(sub=5), "no_subject"),
        (bare(sub="a\0b"), "no_subject"),
        (bare(sub="a\nb"), "no_subject"),
        (compact(header(), json.dumps(claims(NOW)).replace("ada", "\\ud800").encode()), "no_subject"),
        (bare(client_id=["a"]), "bad_client"),
        (bare(exp=int(NOW) - 30), "expired"),
        (bare(exp=str(int(NOW) + 60)), "bad_exp"),
        (bare(exp=True), "bad_exp"),
        (bare(exp=[1]), "bad_exp"),
        (compact(header(), json.dumps(claims(NOW) | {"exp": None}).encode()), "bad_exp"),
        (compact(header(), b'{"exp":Infinity}'), "bad_claims"),
        (compact(header(), b'{"exp":1e400}'), "bad_claims"),
        (compact(header(), b'{"exp":NaN}'), "bad_claims"),
        (bare(exp=95_617_584_000), "too_long_lived"),
        (bare(exp=int(NOW) + 86_401), "too_long_lived"),
        (bare(iat=None, exp=int(NOW) + 86_401), "too_long_lived"),
        (bare(iat=int(NOW) + 31), "issued_in_future"),
        (bare(nbf=int(NOW) + 31), "not_yet_valid"),
        (bare(nbf="0"), "bad_nbf"),
        (bare(scope=5), "bad_scope"),
        (bare(scope='a"b'), "bad_scope"),
        (compact(header(typ="JWT"), claims(NOW)), "wrong_type"),
        (compact(header(typ=None), claims(NOW)), "wrong_type"),
        (compact(header(typ=["at+jwt"]), claims(NOW)), "bad_header"),
        (compact(header(crit=["exp"]), claims(NOW)), "unsupported_header"),
        (compact(header(crit=[]), claims(NOW)), "unsupported_header"),
        (compact(header(jku="https://evil.example"), claims(NOW)), "unsupported_header"),
        (compact(header(jwk=OTHER_KEY.jwk()), claims(NOW), OTHER_KEY), "unsupported_header"),
        (compact(header(x5u="https://evil.example"), claims(NOW)), "unsupported_header"),
        (compact(header(zip="DEF"), claims(NOW)), "unsupported_header"),
        (compact(header(alg={"a": 1}), claims(NOW)), "bad_header"),
        (compact(header(alg=None), claims(NOW)), "bad_header"),
        (compact(header(alg="RS2"), claims(NOW)), "wrong_algorithm"),
        (compact(header(alg="none"), claims(NOW)), "wrong_algorithm"),
        (compact(header(alg="RS512"), claims(NOW)), "wrong_algorithm"),
        (compact(header(kid=5), claims(NOW)), "bad_header"),
        (compact(header(kid="zwei"), claims(NOW)), "unknown_key"),
        (compact(header(), claims(NOW), OTHER_KEY), "bad_signature"),
        (compact(b"[" * 5000, claims(NOW)), "bad_header"),
        (compact(b'{"alg":"RS256","alg":"none","kid":"one","typ":"at+jwt"}', claims(NOW)), "bad_header"),
        (compact(b'{"alg":"RS256","n":' + b"1" * 5000 + b"}", claims(NOW)), "bad_header"),
        (compact(b"\xff", claims(NOW)), "bad_header"),
        (compact(b'"text"', claims(NOW)), "bad_header"),
        (compact(header(), b'{"sub":"a","sub":"b"}'), "bad_claims"),
        (compact(header(), b'{"a":' + b"[" * 2000), "bad_claims"),
        (compact(header(), b"[]"), "bad_claims"),
        (compact(header(x="y" * 9000), claims(NOW)), "too_long"),
        ("", "not_compact"),
        ("a.b", "not_compact"),
        ("..", "not_compact"),
        (".".join("abcde"), "not_compact"),
        (GOOD + "!!!!", "not_compact"),
        (GOOD + "=", "not_compact"),
        (GOOD + "\n", "not_compact"),
        (GOOD[:-9] + "\n" + GOOD[-9:], "not_compact"),
        (GOOD + " ", "not_compact"),
        (GOOD.replace(".", "..", 1), "not_compact"),
        ("天." + GOOD, "not_compact"),
        (GOOD.rsplit(".", 1)[0] + ".AAAAA", "bad_base64"),
        (GOOD.rsplit(".", 1)[0] + "." + b64(b"short"), "bad_signature"),
    ],
)
def test_what_is_no_good_token_is_refused_for_its_own_reason(presented: str, why: str) -> None:
    assert cause(presented) == why


def test_a_signature_counts_only_in_its_one_spelling() -> None:
    last = GOOD[-1]
    others = [
        GOOD[:-1] + character
        for character in "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"
        if character != last
    ]
    assert {cause(other) for other in others} <= {"bad_base64", "bad_signature"}
    assert "bad_base64" in {cause(other) for other in others}


@pytest.mark.parametrize("form", ["der", "pem"])
def test_the_public_key_is_no_secret_to_sign_with(form: str) -> None:
    public = KEY.private.public_key()
    encoding = serialization.Encoding.DER if form == "der" else serialization.Encoding.PEM
    secret = public.public_bytes(encoding, serialization.PublicFormat.SubjectPublicKeyInfo)
    signed = f"{b64(json.dumps(header(alg='HS256')).encode())}.{b64(json.dumps(claims(NOW)).encode())}"
    mac = hmac.HMAC(secret, hashes.SHA256())
    mac.update(signed.encode())
    forged = f"{signed}.{b64(mac.finalize())}"
    assert cause(forged) == "wrong_algorithm"
    careless = JwtRules(EXPECTED, ("RS256", "HS256"))
    assert cause(forged, rules=careless) == "wrong_algorithm"


@pytest.mark.parametrize(
    "more",
    [
        {"aud": AUDIENCE + "/"},
        {"aud": ["x", AUDIENCE]},
        {"exp": int(NOW) - 29},
        {"iat": None},
        {"nbf": int(NOW) + 30},
        {"exp": NOW + 5.5},
        {"scope": None, "scp": ["a"]},
    ],
)
def test_what_is_unusual_and_right_passes(more: Json) -> None:
    assert verified(bare(**more)).name == "ada"


@pytest.mark.parametrize(
    ("more", "scopes"),
    [
        ({"scope": ""}, set()),
        ({"scope": None}, set()),
        ({"scope": "a b"}, {"a", "b"}),
        ({"scope": ["a", "b"]}, {"a", "b"}),
        ({"scope": None, "scp": ["a"]}, {"a"}),
        ({"scope": None, "scp": "a"}, {"a"}),
        ({"scope": "* a"}, {"a"}),
    ],
)
def test_scopes_are_words_or_a_list_and_never_everything(more: Json, scopes: set[str]) -> None:
    assert verified(bare(**more)).scopes == scopes


def test_another_claim_may_hold_the_scopes() -> None:
    rules = JwtRules(Expected(ISSUER, spellings([AUDIENCE]), scope_claim="permissions"))
    assert verified(bare(permissions=["deploy"]), rules=rules).scopes == {"deploy"}


def test_other_types_are_taken_where_the_operator_says_so() -> None:
    rules = JwtRules(EXPECTED, types=("JWT",))
    assert verified(compact(header(typ="JWT"), claims(NOW)), rules=rules).name == "ada"
    assert verified(compact(header(typ=None), claims(NOW)), rules=rules).name == "ada"
    assert cause(GOOD, rules=rules) == "wrong_type"
    assert verified(compact(header(typ="application/AT+jwt"), claims(NOW))).name == "ada"


def test_a_token_for_one_endpoint_says_so_and_one_for_all_of_us_does_not() -> None:
    urls = [f"{AUDIENCE}/servers/{name}/mcp" for name in ("git", "time")]
    rules = JwtRules(Expected(ISSUER, spellings([AUDIENCE]), spellings(urls)))
    assert verified(bare(aud=urls[0]), rules=rules).resources == {urls[0]}
    assert verified(bare(aud=[*urls, "x"]), rules=rules).resources == set(urls)
    assert verified(bare(aud=[urls[0], AUDIENCE]), rules=rules).resources is None
    assert cause(bare(aud=f"{AUDIENCE}/servers/none/mcp"), rules=rules) == "wrong_audience"


@given(st.text(max_size=200))
def test_whatever_is_presented_is_a_bad_token_or_a_good_one(presented: str) -> None:
    with pytest.raises(BadToken):
        parse(presented)


@given(st.one_of(st.binary(max_size=60), st.just(b"{}")), st.one_of(st.binary(max_size=60), st.just(b"{}")))
def test_whatever_is_in_it_too(head: bytes, payload: bytes) -> None:
    with pytest.raises(BadToken):
        verified(f"{b64(head)}.{b64(payload)}.{b64(b'x' * 256)}")


@given(st.integers(0, len(GOOD) - 1), st.sampled_from("Az09-_.=!\n"))
def test_a_good_token_with_any_one_character_changed_is_bad(place: int, character: str) -> None:
    assume(GOOD[place] != character)
    with pytest.raises(BadToken):
        verified(GOOD[:place] + character + GOOD[place + 1 :])


json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(max_size=9),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=3), inner, max_size=3),
    max_leaves=5,
)


@given(st.sampled_from([*sorted(claims(NOW)), "nbf", "scp", "azp", "typ", "jti"]), json_values)
def test_a_claim_of_any_kind_makes_a_principal_or_a_bad_token(name: str, value: object) -> None:
    said = claims(NOW) | {name: value}
    try:
        principal = admitted(said, EXPECTED, NOW)
    except BadToken:
        return
    empty, issuer, subject, client = principal.key.split("\x1f")
    assert (empty, issuer) == ("", ISSUER)
    assert subject.isprintable()
    assert client.isprintable()


# Keys.


def test_the_key_is_the_one_that_kid_names_whatever_stands_before_it() -> None:
    strange = [
        {"kty": "OKP", "crv": "Ed25519", "kid": "ed", "x": "AA"},
        {"kty": "EC", "crv": "P-999", "kid": "odd", "x": "AA", "y": "AA"},
        {"kty": "oct", "kid": "secret", "k": "AAAA"},
        EC_KEY.jwk(),
    ]
    assert verified(GOOD, *strange, OTHER_KEY.jwk(), KEY.jwk()).name == "ada"
    assert cause(GOOD, *strange, OTHER_KEY.jwk()) == "unknown_key"


def test_a_curve_signs_as_well_and_only_with_its_own_algorithm() -> None:
    rules = JwtRules(EXPECTED, ("RS256", "ES256"))
    good = compact(header(alg="ES256", kid="curve"), claims(NOW), EC_KEY)
    assert verified(good, EC_KEY.jwk(), rules=rules).name == "ada"
    assert cause(compact(header(kid="curve"), claims(NOW), EC_KEY), EC_KEY.jwk(), rules=rules) == "wrong_algorithm"
    assert cause(f"{good.rpartition('.')[0]}.{b64(bytes(63))}", EC_KEY.jwk(), rules=rules) == "bad_signature"
    assert (
        cause(compact(header(alg="ES256", kid="curve"), claims(NOW), EcKey("curve")), EC_KEY.jwk(), rules=rules)
        == "bad_signature"
    )


@pytest.mark.parametrize(
    "unusable",
    [
        KEY.jwk(use="enc"),
        KEY.jwk(key_ops=["sign"]),
        KEY.jwk(key_ops="verify"),
        KEY.jwk(alg="RS512"),
        KEY.jwk(alg="HS256"),
        KEY.jwk(n=5),
        KEY.jwk(n="!"),
        KEY.jwk(kty="oct"),
        KEY.jwk(kty=["RSA"]),
        KEY.jwk(e=None),
        WEAK_KEY.jwk(),
    ],
)
def test_a_key_for_something_else_is_none_at_all(unusable: Json) -> None:
    signer = WEAK_KEY if unusable["n"] == WEAK_KEY.jwk()["n"] else KEY
    assert cause(compact(header(), claims(NOW), signer), unusable, OTHER_KEY.jwk()) == "unknown_key"


def test_of_two_keys_with_one_name_neither_is_taken() -> None:
    assert cause(GOOD, KEY.jwk(), OTHER_KEY.jwk(kid="one"), OTHER_KEY.jwk()) == "unknown_key"


def test_a_token_without_kid_means_the_only_key() -> None:
    nameless = compact(header(kid=None), claims(NOW))
    assert verified(nameless).name == "ada"
    assert cause(nameless, KEY.jwk(), OTHER_KEY.jwk()) == "unknown_key"


def test_a_bad_signature_costs_one_check_however_many_keys_there_are() -> None:
    keys = [OTHER_KEY.jwk(kid=f"k{number}") for number in range(31)]
    bad = compact(header(), claims(NOW), OTHER_KEY)
    began = time.process_time()
    assert cause(bad, KEY.jwk(), *keys) == "bad_signature"
    assert time.process_time() - began < 0.1
