"""What is refused before anybody parses it: broken UTF-8 and deep nesting."""

import json
from time import process_time

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from app.protocol.border import check_text
from app.protocol.faults import Malformed
from tests.protocol.written import STRINGS, VALUES

CHUNK = 65536
OPEN = {"[": "]", "{": "}"}


def depth_of(text: str) -> int:
    """How deep JSON nests, told by reading it character by character."""
    depth = deepest = 0
    in_string = escaped = False
    for character in text:
        if in_string:
            in_string = escaped or character != '"'
            escaped = character == "\\" and not escaped
        elif character == '"':
            in_string = True
        elif character in OPEN:
            depth += 1
            deepest = max(deepest, depth)
        elif character in OPEN.values():
            depth -= 1
    return deepest


def is_refused(text: bytes) -> bool:
    try:
        check_text(text)
    except Malformed:
        return True
    return False


def nested(depth: int, inside: str = "") -> bytes:
    return ("[" * depth + inside + "]" * depth).encode()


def objects_nested(depth: int) -> bytes:
    return ('{"a":' * depth + "1" + "}" * depth).encode()


@pytest.mark.parametrize("nest", [nested, objects_nested])
def test_sixty_four_levels_pass_and_sixty_five_do_not(nest: object) -> None:
    assert callable(nest)
    check_text(nest(64))
    with pytest.raises(Malformed, match="nested deeper than 64"):
        check_text(nest(65))


def test_arrays_and_objects_count_alike() -> None:
    check_text(b'[{"a":' * 32 + b"1" + b"}]" * 32)
    with pytest.raises(Malformed, match="nested deeper"):
        check_text(b'[{"a":' * 32 + b"[]" + b"}]" * 32)


def test_any_number_of_brackets_side_by_side_is_no_depth() -> None:
    check_text(b"[" + b"[],{}," * 10_000 + b"[]]")


def test_the_deepest_place_may_be_anywhere() -> None:
    flat = ",[]" * 100
    for text in (
        f"[{flat[1:]},{nested(64).decode()}]",
        f"[{nested(64).decode()}{flat}]",
        f"[1{flat},{nested(64).decode()}{flat}]",
    ):
        with pytest.raises(Malformed, match="nested deeper"):
            check_text(text.encode())


@pytest.mark.parametrize(
    "string",
    [
        r'"[[[[[["',
        r'"]"',
        r'"\"[[[[[["',
        r'"\\\"[[[[[["',
        r'"[\\"',
        r'"\\\\\\"',
        r'"\\[\\\\\"["',
        r'"{\u0022[{"',
        r'"\n\\\n\"["',
    ],
)
def test_brackets_and_quotes_inside_strings_do_not_count(string: str) -> None:
    assert isinstance(json.loads(string), str)
    check_text(nested(64, ",".join([string] * 70)))
    with pytest.raises(Malformed, match="nested deeper"):
        check_text(nested(65, ",".join([string] * 70)))


@pytest.mark.parametrize(
    "text",
    [
        b"[" * 100_000,
        b'{"a":' * 100_000,
        b"[" * 50_000 + b"]" * 50_000,
        b"[{" * 50_000,
        b'"' + b"[" * 50 + b'"' + b"[" * 65,
    ],
)
def test_depth_beyond_all_measure_is_refused(text: bytes) -> None:
    with pytest.raises(Malformed, match="nested deeper"):
        check_text(text)


def test_no_nesting_makes_the_check_slow() -> None:
    def seconds(text: bytes) -> float:
        began = process_time()
        is_refused(text)
        return process_time() - began

    chains = b"[" + b",".join([nested(63)] * 8000) + b"]"
    flat = min(seconds(b"[" + b"[]," * (len(chains) // 3) + b"[]]") for _ in range(3))
    for hostile in (chains, b"[" * len(chains), nested(len(chains) // 2), b"]" * len(chains)):
        assert min(seconds(hostile) for _ in range(3)) < 10 * flat


@st.composite
def towers(draw: st.DrawFn) -> str:
    """JSON around the limit, with strings and values beside each level."""
    text = draw(VALUES)
    for _ in range(draw(st.integers(52, 66))):
        beside = draw(STRINGS)
        text = draw(st.sampled_from(FLOORS)).format(beside, text)
    return text


FLOORS = ["[{0},{1}]", "[{1},{0}]", "[ {1} ]", "{{{0}:{1}}}", '{{{0}:[[]],"[":{1}}}', '{{"]":{1},{0}:0}}']


@given(towers())
def test_what_is_too_deep_is_told_as_by_reading_character_by_character(text: str) -> None:
    json.loads(text)
    assert is_refused(text.encode()) == (depth_of(text) > 64)


@given(st.lists(st.sampled_from([1, 2, 3, 9, 9, -1, -2, -3, -8]), min_size=20, max_size=200))
def test_any_skyline_of_brackets_is_judged_by_its_highest_peak(rises: list[int]) -> None:
    text, height = "[", 1
    for wanted in rises:
        rise = max(wanted, 1 - height)
        text += "[" * rise if rise > 0 else "]" * -rise
        height += rise
    text += "]" * height
    assert is_refused(text.encode()) == (depth_of(text) > 64)


INVALID = {
    "a lone continuation byte": b"\x80",
    "a start without its continuation": b"\xc3",
    "a start followed by a letter": b"\xc3(",
    "never a byte of UTF-8": b"\xff",
    "nor this": b"\xfe",
    "an overlong slash": b"\xc0\xaf",
    "an overlong NUL": b"\xc0\x80",
    "an overlong of three": b"\xe0\x80\xaf",
    "an overlong of four": b"\xf0\x80\x80\xaf",
    "a surrogate": b"\xed\xa0\x80",
    "a pair of surrogates (CESU-8)": b"\xed\xa0\xbd\xed\xb8\x80",
    "beyond the last plane": b"\xf4\x90\x80\x80",
    "five bytes": b"\xf8\x88\x80\x80\x80",
    "three of four bytes": b"\xf0\x9f\x98",
    "two of three bytes": b"\xe4\xb8",
    "Latin-1": "café".encode("latin-1"),
    "UTF-16": "{}é".encode("utf-16"),
    "a UTF-16 byte order mark": b"\xff\xfe",
}


@pytest.mark.parametrize("broken", INVALID.values(), ids=INVALID.keys())
def test_what_is_not_utf8_is_refused_wherever_it_stands(broken: bytes) -> None:
    for place in (0, 1, CHUNK - 3, CHUNK - 2, CHUNK - 1, CHUNK, 2 * CHUNK - 1):
        for after in (b"", b"yy"):
            with pytest.raises(Malformed, match="not UTF-8"):
                check_text(b"x" * place + broken + after)


@pytest.mark.parametrize("character", ["é", "中", "😀", "\ufeff", "\u2028", "\U0010ffff", "\uffff"])
def test_a_character_may_lie_across_the_border_of_two_chunks(character: str) -> None:
    for shift in range(-4, 5):
        for end in ("", "x", "é"):
            check_text(("x" * (CHUNK + shift) + character + end).encode())


@example(b"\xc3" + b"\xa9")
@given(st.binary(max_size=12))
def test_utf8_is_judged_as_python_judges_it_across_a_border(text: bytes) -> None:
    def is_utf8(padded: bytes) -> bool:
        try:
            padded.decode()
        except UnicodeDecodeError:
            return False
        return True

    for padding in (0, CHUNK - 6):
        padded = b"x" * padding + text
        assert is_refused(padded) != is_utf8(padded)
