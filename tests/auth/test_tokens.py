import re

import pytest

from app.auth.expiry import unix_seconds
from app.auth.principal import ANONYMOUS, Principal
from app.auth.tokens import Entry, StaticTokens, digest, hash_of, mint

TOKEN = "vdt_0000_a-token-for-tests"


def test_a_token_leads_to_its_principal() -> None:
    tokens = StaticTokens([Entry("laptop", hash_of(TOKEN), frozenset({"read"}), 99.0)], lambda: 98.9)
    assert tokens.find(digest(TOKEN)) == Principal("laptop", frozenset({"read"}), 99.0)


@pytest.mark.parametrize(
    "presented", ["", "other", TOKEN + "x", TOKEN[:-1], TOKEN.upper(), "ÿ", "天气", "\ud800", "\0"]
)
def test_anything_else_leads_to_nobody_and_never_raises(presented: str) -> None:
    assert StaticTokens([Entry("laptop", hash_of(TOKEN))]).find(digest(presented)) is None


@pytest.mark.parametrize("presented", ["", TOKEN, "\0" * 32])
def test_without_entries_nobody_is_let_in(presented: str) -> None:
    assert StaticTokens([]).find(digest(presented)) is None


def test_a_token_ends_when_the_wall_clock_says_so() -> None:
    now = 98.0
    tokens = StaticTokens([Entry("laptop", hash_of(TOKEN), expires_at=99.0)], lambda: now)
    assert tokens.find(digest(TOKEN)) is not None
    now = 99.0
    assert tokens.find(digest(TOKEN)) is None


def test_fresh_tokens_hold_256_random_bits_and_differ() -> None:
    tokens = {mint() for _ in range(50)}
    assert len(tokens) == 50
    assert all(re.fullmatch(r"vdt_[0-9a-f]{8}_[A-Za-z0-9_-]{43}", token) for token in tokens)


def test_a_hash_is_the_sha256_that_other_tools_print() -> None:
    assert hash_of("abc") == "sha256:ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad"


def test_principals_of_different_names_have_different_keys() -> None:
    assert Principal("a", frozenset()).key != Principal("b", frozenset()).key
    assert ANONYMOUS.key == "anonymous"


@pytest.mark.parametrize(("text", "seconds"), [("1970-01-01T00:01:00Z", 60), ("1970-01-01t01:00:00.5+01:00", 0.5)])
def test_an_expiry_is_a_moment_whatever_its_offset(text: str, seconds: float) -> None:
    assert unix_seconds(text) == seconds


@pytest.mark.parametrize(
    "text", ["2027-01-01", "2027-01-01T00:00:00", "2027-13-01T00:00:00Z", "tomorrow", "2027-01-01T25:00:00Z"]
)
def test_an_expiry_without_offset_or_that_is_no_moment_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match="2027-01-01T00:00:00Z"):
        unix_seconds(text)
