"""How a header's value is written, and what no encoder writes."""

from base64 import b64encode

import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.protocol import headers
from app.protocol.faults import HeaderMismatch

NAME = b"mcp-name"


def encoded(text: str) -> bytes:
    """As a client writes it (2026-07-28, basic/transports: "Value Encoding")."""
    is_plain = text.isascii() and text.isprintable() and text == text.strip()
    if is_plain and not (text.startswith("=?base64?") and text.endswith("?=")):
        return text.encode()
    return b"=?base64?%b?=" % b64encode(text.encode())


def sentinel(coded: bytes) -> bytes:
    return b"=?base64?" + coded + b"?="


@given(st.text(st.characters(exclude_categories=["Cs"])))
def test_what_a_client_encodes_is_what_is_read(text: str) -> None:
    assert headers.decoded({NAME: encoded(text)}, NAME) == text


@given(st.binary())
def test_bytes_in_base64_are_read_if_they_are_utf8(raw: bytes) -> None:
    try:
        wanted = raw.decode()
    except UnicodeDecodeError:
        with pytest.raises(HeaderMismatch):
            headers.decoded({NAME: sentinel(b64encode(raw))}, NAME)
    else:
        assert headers.decoded({NAME: sentinel(b64encode(raw))}, NAME) == wanted


@given(st.from_regex(rb"[A-Za-z0-9+/=]{0,12}", fullmatch=True))
def test_each_text_has_only_one_way_to_be_written_in_base64(coded: bytes) -> None:
    try:
        text = headers.decoded({NAME: sentinel(coded)}, NAME)
    except HeaderMismatch:
        return
    assert text is not None
    assert b64encode(text.encode()) == coded


@given(st.binary(max_size=20).filter(lambda value: b"=?base64?" not in value))
def test_any_other_bytes_are_what_they_are_or_no_header(value: bytes) -> None:
    if all(byte == 9 or 32 <= byte < 127 for byte in value):
        assert headers.decoded({NAME: value}, NAME) == value.decode().strip(" \t")
    else:
        with pytest.raises(HeaderMismatch):
            headers.decoded({NAME: value}, NAME)


READ = {
    "plain": (b"us-west1", "us-west1"),
    "empty": (b"", ""),
    "space around it": (b" \tus-west1\t ", "us-west1"),
    "space in it": (b"us west\t1", "us west\t1"),
    "Chinese": (b"=?base64?SGVsbG8sIOS4lueVjA==?=", "Hello, 世界"),
    "padded": (b"=?base64?IHBhZGRlZCA=?=", " padded "),
    "two lines": (b"=?base64?bGluZTEKbGluZTI=?=", "line1\nline2"),
    "the sentinel itself": (b"=?base64?PT9iYXNlNjQ/bGl0ZXJhbD89?=", "=?base64?literal?="),
    "nothing, in Base64": (b"=?base64??=", ""),
    "no prefix": (b"SGVsbG8=", "SGVsbG8="),
    "no suffix": (b"=?base64?SGVsbG8=", "=?base64?SGVsbG8="),
    "prefix in capitals": (b"=?BASE64?SGVsbG8=?=", "=?BASE64?SGVsbG8=?="),
}


@pytest.mark.parametrize(("value", "text"), READ.values(), ids=READ)
def test_a_value_is_read_to_the_letter_but_for_its_sentinel(value: bytes, text: str) -> None:
    assert headers.decoded({NAME: value}, NAME) == text


REFUSED = {
    "padding left out": sentinel(b"SGVsbG8"),
    "padding too long": sentinel(b"SGVsbG8=="),
    "padding alone": sentinel(b"="),
    "foreign characters": sentinel(b"SGVs!!!bG8="),
    "the alphabet of URLs": sentinel(b"Pz8_"),
    "space": sentinel(b"SGVs bG8="),
    "bits behind the end": sentinel(b"SGVsbG9="),
    "something behind the padding": sentinel(b"SGVsbG8=SGVsbG8="),
    "not UTF-8": sentinel(b64encode(b"\xff\xfe")),
    "a surrogate": sentinel(b64encode(b"\xed\xa0\x80")),
    "a prefix that is its own suffix": b"=?base64?=",
}


@pytest.mark.parametrize("value", REFUSED.values(), ids=REFUSED)
def test_what_no_encoder_writes_is_refused(value: bytes) -> None:
    with pytest.raises(HeaderMismatch, match="Mcp-Name is not Base64"):
        headers.decoded({NAME: value}, NAME)


@pytest.mark.parametrize("byte", [*range(9), *range(10, 32), 127, 128, 233, 255])
def test_a_character_that_no_header_may_have_is_refused(byte: int) -> None:
    for read in (headers.plain, headers.decoded):
        with pytest.raises(HeaderMismatch, match="Mcp-Name has invalid characters"):
            read({NAME: b"a%cb" % byte}, NAME)


def test_a_header_that_is_not_there_says_nothing() -> None:
    assert headers.plain({}, NAME) is None
    assert headers.decoded({}, NAME) is None


def test_only_a_value_that_may_be_encoded_is_decoded() -> None:
    assert headers.plain({NAME: b"=?base64?SGVsbG8=?="}, NAME) == "=?base64?SGVsbG8=?="
