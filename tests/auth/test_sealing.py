"""State that passes through a client: nothing but what went out, to whom it went out, comes back in."""

from base64 import urlsafe_b64decode, urlsafe_b64encode
from contextlib import suppress

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from app.auth.sealing import Sealed, Sealer

STATE = Sealed("exchange-1", 3, 1234.5)
BOUND = (b"laptop", b"weather", b"tools/call", b'{"name":"t"}')
ALPHABET = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_"


@pytest.fixture
def sealer() -> Sealer:
    return Sealer()


@given(st.text(max_size=40), st.integers(0, 2**53), st.floats(0, 1e15), st.lists(st.binary(max_size=20), max_size=6))
def test_what_was_sealed_comes_back_as_it_was(
    exchange: str, round_: int, expires_at: float, bound: list[bytes]
) -> None:
    state = Sealed(exchange, round_, expires_at)
    sealer = Sealer()
    assert sealer.unseal(sealer.seal(state, bound), bound) == state


def test_one_state_has_one_seal_which_is_plain_ascii_of_base64(sealer: Sealer) -> None:
    text = sealer.seal(STATE, BOUND)
    assert text == sealer.seal(STATE, list(BOUND))
    assert set(text) <= {*ALPHABET, "="}


def test_no_byte_can_be_another(sealer: Sealer) -> None:
    raw = urlsafe_b64decode(sealer.seal(STATE, BOUND))
    for place in range(len(raw)):
        for bit in range(8):
            changed = raw[:place] + bytes([raw[place] ^ 1 << bit]) + raw[place + 1 :]
            assert sealer.unseal(urlsafe_b64encode(changed).decode(), BOUND) is None


def test_no_character_can_be_another(sealer: Sealer) -> None:
    text = sealer.seal(STATE, BOUND)
    for place, written in enumerate(text):
        for other in {*ALPHABET, "=", "+", "/", " ", "\n"} - {written}:
            assert sealer.unseal(text[:place] + other + text[place + 1 :], BOUND) is None


def test_nothing_can_be_left_out_or_added(sealer: Sealer) -> None:
    text = sealer.seal(STATE, BOUND)
    raw = urlsafe_b64decode(text)
    for length in range(len(text)):
        assert sealer.unseal(text[:length], BOUND) is None
        assert sealer.unseal(text[length + 1 :], BOUND) is None
    for length in range(len(raw)):
        assert sealer.unseal(urlsafe_b64encode(raw[:length]).decode(), BOUND) is None
        assert sealer.unseal(urlsafe_b64encode(raw[length + 1 :]).decode(), BOUND) is None
    for more in (b"\0", b" ", b"]"):
        assert sealer.unseal(urlsafe_b64encode(raw + more).decode(), BOUND) is None
        assert sealer.unseal(urlsafe_b64encode(more + raw).decode(), BOUND) is None


def test_of_the_spellings_of_one_value_only_ours_counts(sealer: Sealer) -> None:
    """Base64 has spare bits at its end, padding that may be missing, and readers that skip what they do not know."""
    tried = 0
    for n in range(12):
        text = sealer.seal(Sealed("x" * n, 1, 1.0), BOUND)
        raw = urlsafe_b64decode(text)
        spellings = [text + "\n", text + "=", text + "====", " " + text, text[:8] + "!" + text[8:], text.rstrip("=")]
        bare = text.rstrip("=")
        spellings += [bare[:-1] + last + text[len(bare) :] for last in ALPHABET]
        for spelling in {spelling for spelling in spellings if spelling != text}:
            with suppress(ValueError):
                tried += urlsafe_b64decode(spelling) == raw
            assert sealer.unseal(spelling, BOUND) is None
        assert sealer.unseal(text, BOUND) is not None
    assert tried > 12


@pytest.mark.parametrize("text", ["", "=", "====", "AAAA", "A" * 44, "A" * 400, "x", "é", "\ud800", "\0", "天" * 30])
def test_what_was_never_sealed_is_nothing_and_never_raises(sealer: Sealer, text: str) -> None:
    assert sealer.unseal(text, BOUND) is None


@given(st.text(max_size=120))
def test_no_text_at_all_makes_it_raise(text: str) -> None:
    assert Sealer().unseal(text, ()) is None


@pytest.mark.parametrize("place", range(4))
@pytest.mark.parametrize("other", [b"", b"x"])
def test_it_is_of_no_use_for_anybody_or_anything_else(sealer: Sealer, place: int, other: bytes) -> None:
    text = sealer.seal(STATE, BOUND)
    assert sealer.unseal(text, (*BOUND[:place], other, *BOUND[place + 1 :])) is None
    assert sealer.unseal(text, (*BOUND[:place], BOUND[place] + b"\0", *BOUND[place + 1 :])) is None


@pytest.mark.parametrize(
    "bound",
    [
        (),
        (b"ab",),
        (b"a", b"b", b""),
        (b"", b"a", b"b"),
        (b"b", b"a"),
        (b"", b"ab"),
        (b"ab", b""),
        (b"a\0\0\0\0\0\0\0\1b",),
    ],
)
def test_what_it_is_bound_to_cannot_move_between_neighbours(sealer: Sealer, bound: tuple[bytes, ...]) -> None:
    text = sealer.seal(STATE, (b"a", b"b"))
    assert sealer.unseal(text, bound) is None
    assert sealer.unseal(text, (b"a", b"b")) == STATE


@given(st.lists(st.binary(max_size=3), max_size=4), st.lists(st.binary(max_size=3), max_size=4))
def test_no_two_lists_of_parts_are_one(one: list[bytes], other: list[bytes]) -> None:
    assume(one != other)
    sealer = Sealer()
    assert sealer.unseal(sealer.seal(STATE, one), other) is None


def test_the_state_cannot_move_into_what_it_is_bound_to(sealer: Sealer) -> None:
    """The body is the last part of the MAC: under its own bytes as a part, another body does not pass."""
    raw = urlsafe_b64decode(sealer.seal(STATE, BOUND))
    mac, body = raw[:32], raw[32:]
    for kept in range(len(body)):
        forged = urlsafe_b64encode(mac + body[kept:]).decode()
        assert sealer.unseal(forged, (*BOUND, body[:kept])) is None


def test_another_key_opens_nothing(sealer: Sealer) -> None:
    assert Sealer().unseal(sealer.seal(STATE, BOUND), BOUND) is None
