"""Walks through a list that changes on the way."""

from base64 import urlsafe_b64encode

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from app.core.pages import Name, begin, cursor
from app.protocol.faults import BadParams

LIST = [("a", "1"), ("a", "2"), ("a", "3"), ("b", "1"), ("b", "2"), ("c", "1")]


def listed(servers: dict[str, str]) -> list[Name]:
    return [(server, own) for server, things in servers.items() for own in things]


def walked(before: list[Name], end: int, after: list[Name]) -> list[Name]:
    """What a client sees who turned the page after so many, and then saw all that was left."""
    return before[:end] + after[begin(cursor(before, end), after) :]


def test_a_walk_begins_at_the_beginning() -> None:
    assert begin(None, LIST) == begin("", LIST) == 0


@pytest.mark.parametrize("end", range(1, len(LIST)))
def test_a_cursor_goes_on_after_what_it_names(end: int) -> None:
    assert begin(cursor(LIST, end), LIST) == end


AFTERWARDS = {
    "what it names is gone": {"a": "13", "b": "12", "c": "1"},
    "its server is gone": {"b": "12", "c": "1"},
    "it and an earlier server are gone, and another is new": {"b": "12", "c": "1", "d": "1"},
    "something came before it": {"x": "123", "a": "0123", "b": "12", "c": "1"},
    "something before it is gone": {"a": "23", "b": "12", "c": "1"},
    "a server before it is gone": {"a": "23", "b": "12", "c": "1"},
}


@pytest.mark.parametrize("case", AFTERWARDS)
def test_what_stayed_comes_once(case: str) -> None:
    before = listed({"y": "1", "a": "123", "b": "12", "c": "1"})
    after = listed(AFTERWARDS[case])
    seen = walked(before, 3, after)
    assert seen[:3] == before[:3]
    assert [name for name in seen[3:] if name in before] == [name for name in before[3:] if name in after]


def test_where_all_of_a_server_is_gone_what_comes_after_it_is_next() -> None:
    assert begin(cursor(LIST, 5), listed({"a": "123", "new": "1", "c": "1"})) == 3
    assert begin(cursor(LIST, 5), listed({"c": "1"})) == 0
    assert begin(cursor(LIST, 6), listed({"a": "123"})) == 3
    assert begin(cursor(LIST, 6), []) == 0


def test_where_more_than_the_named_is_gone_its_place_at_its_server_counts() -> None:
    """So something may be missed, of that server alone."""
    assert walked(LIST, 2, listed({"a": "3", "b": "12", "c": "1"})) == listed({"a": "12", "b": "12", "c": "1"})


shelves = st.dictionaries(st.sampled_from("abcdef"), st.sets(st.sampled_from("12345678"), min_size=1), min_size=1)
"""What each server has at some time; in the order of the servers, and of each server's own things."""


def ordered(servers: dict[str, set[str]]) -> list[Name]:
    return [(server, own) for server in sorted(servers) for own in sorted(servers[server])]


@given(st.lists(shelves, min_size=1, max_size=6), st.integers(1, 10))
@example([{"a": {"1", "2", "3"}}, {"a": {"1", "3"}}], 2)
@example([{"a": {"1"}, "b": {"1"}}, {"b": {"1"}}], 1)
@example([{"b": {"1", "2"}}, {"a": {"1"}}, {"b": {"2"}}], 1)
def test_a_walk_skips_and_repeats_nothing_that_stayed(times: list[dict[str, set[str]]], size: int) -> None:
    """Whatever comes and goes between two pages, as long as their boundary is there, or its server is not. What is of
    another server than the boundary comes once in any case."""
    seen: list[Name] = []
    where, loose = None, set[str]()
    for names in [ordered(each) for each in times] + [ordered(times[-1])] * 50:
        if seen and seen[-1] not in names and seen[-1][0] in {server for server, _ in names}:
            loose.add(seen[-1][0])
        start = begin(where, names)
        seen += names[start : start + size]
        if start + size >= len(names):
            break
        where = cursor(names, start + size)
    stayed = [name for name in ordered(times[0]) if all(name in ordered(each) for each in times)]
    firm = [name for name in seen if name in stayed and name[0] not in loose]
    assert firm == [name for name in stayed if name[0] not in loose]


@given(shelves, st.integers(1, 60))
def test_a_walk_through_what_does_not_change_sees_each_thing_once(servers: dict[str, set[str]], size: int) -> None:
    names, seen, where = ordered(servers), list[Name](), None
    while not seen or where:
        start = begin(where, names)
        seen += names[start : start + size]
        where = cursor(names, start + size) if start + size < len(names) else None
    assert seen == names


@pytest.mark.parametrize("own", ["x" * 1_000_000, "\u0001" * 5000, "中" * 5000])
def test_the_longest_names_have_short_cursors(own: str) -> None:
    names = [(f"{number:064}", own) for number in range(100)] + [(f"{99:064}", own + "'")]
    where = cursor(names, 100)
    assert len(where) < 4096
    assert begin(where, names) == 100
    assert begin(cursor(names, 101), names) == 101


def written(text: str) -> str:
    return urlsafe_b64encode(text.encode()).decode()


NO_CURSORS = {
    "text": "next",
    "a number": "12",
    "no base64": "!!!!",
    "not ascii": "é",
    "half a character": "\ud800",
    "wrong padding": cursor(LIST, 2).rstrip("=") + "=====",
    "no padding": written('["1",0,["abc"]]').rstrip("=")[:-1],
    "other characters between": "!" + cursor(LIST, 2),
    "no JSON": written("a,b"),
    "no text": urlsafe_b64encode(b"\xff\xfe\xfd").decode(),
    "another thing": written('{"own":"1"}'),
    "too little": written('["1",0]'),
    "too much": written('["1",0,["a"],1]'),
    "no server": written('["1",0,[]]'),
    "too many servers": written(f'["1",0,[{",".join(["1"] * 17)}]]'),
    "a negative place": written('["1",-1,["a"]]'),
    "a true place": written('["1",true,["a"]]'),
    "half a place": written('["1",0.5,["a"]]'),
    "an endless place": written('["1",1e999,["a"]]'),
    "a place in text": written('["1","0",["a"]]'),
    "too long": written(f'["{"1" * 100_000}",0,["a"]]'),
    "much too deep": written("[" * 6000),
    "a nul": "\0",
}


@pytest.mark.parametrize("case", NO_CURSORS)
def test_what_is_no_cursor_is_refused(case: str) -> None:
    with pytest.raises(BadParams, match="leave it out to begin anew"):
        begin(NO_CURSORS[case], LIST)


def test_a_place_far_beyond_the_end_is_the_end_of_its_server() -> None:
    assert begin(written(f'["gone",{10**40},["a"]]'), LIST) == 3


@given(st.text(max_size=200) | st.binary(max_size=100).map(lambda data: urlsafe_b64encode(data).decode()))
def test_any_text_is_a_place_in_the_list_or_refused(text: str) -> None:
    try:
        assert 0 <= begin(text, LIST) <= len(LIST)
    except BadParams:
        assert text
