"""Whose each URI is."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.core.joined_uris import Owned, disputed, glob, marked, unmarked
from tests.core.inventories import own_names, server_names


def test_a_marked_uri_names_its_server_and_is_its_own_behind_that() -> None:
    assert marked("files", "file:///a%20b?c#d") == "viaduct://files/file:///a%20b?c#d"
    assert unmarked("viaduct://files/file:///a%20b?c#d") == ("files", "file:///a%20b?c#d")


@given(server_names, own_names)
def test_every_marked_uri_is_read_back(server: str, uri: str) -> None:
    assert unmarked(marked(server, uri)) == (server, uri)
    assert unmarked(marked("outer", marked(server, uri))) == ("outer", marked(server, uri))


@pytest.mark.parametrize("uri", ["file:///a", "", "viaduct:", "viaduct://", "viaduct://files", " viaduct://files/a"])
def test_others_are_nobody_s(uri: str) -> None:
    assert unmarked(uri) is None


MADE = {
    "file:///{path}": ("file:///a/b", "file:///", "file:///a%20b"),
    "db://{table}/rows{?limit,offset}": ("db://users/rows", "db://users/rows?limit=1&offset=2"),
    "x://{+path}{/more*}{#part}": ("x://a/b/c/d#e",),
    "x://fixed": ("x://fixed",),
    "{scheme}://{rest}": ("http://example.com",),
}
NOT_MADE = {
    "file:///{path}": ("file:/a", "http://file:///a"),
    "db://{table}/rows{?limit,offset}": ("db://users/columns",),
    "x://fixed": ("x://fixed/more", "x://"),
}


@pytest.mark.parametrize("template", MADE)
def test_a_template_is_recognized_in_what_is_made_of_it(template: str) -> None:
    assert all(map(glob(template).matches, MADE[template]))
    assert not any(map(glob(template).matches, NOT_MADE.get(template, ())))


def test_a_template_that_begins_like_nothing_else_is_undisputed() -> None:
    templates = [("a", "a://{x}"), ("a", "a://{y}/z"), ("b", "b://{x}"), ("b", "bb://{x}"), ("c", "c;{x}")]
    assert disputed(templates, [("a", "a://1"), ("b", "b://2"), ("c", "c://3")]) == set()


DISPUTED: dict[str, tuple[list[Owned], list[Owned], set[Owned]]] = {
    "one shape": ([("a", "x://{one}"), ("b", "x://{two}")], [], {("a", "x://{one}"), ("b", "x://{two}")}),
    "one within the other": (
        [("a", "x://{path}"), ("a", "x://own/{path}"), ("b", "x://docs/{page}"), ("b", "y://{page}")],
        [],
        {("a", "x://{path}"), ("b", "x://docs/{page}")},
    ),
    "what another lists": ([("a", "x://{path}")], [("b", "x://1")], {("a", "x://{path}")}),
    "what it lists itself": ([("a", "x://{path}")], [("a", "x://1"), ("b", "y://1")], set()),
    "without a variable": ([("a", "x://1")], [("b", "x://1")], {("a", "x://1")}),
    "anything": (
        [("a", "{+uri}"), ("b", "x://{path}"), ("b", "y://{path}")],
        [],
        {("a", "{+uri}"), ("b", "x://{path}"), ("b", "y://{path}")},
    ),
    "anything, alone": ([("a", "{+uri}")], [], {("a", "{+uri}")}),
    "what is ours": (
        [("a", "viaduct://b/{path}"), ("a", "via{what}"), ("a", "viaducts://{path}")],
        [],
        {("a", "viaduct://b/{path}"), ("a", "via{what}")},
    ),
    "three": (
        [("a", "x://{1}"), ("b", "x://y/{1}"), ("c", "x://y/z/{1}")],
        [],
        {("a", "x://{1}"), ("b", "x://y/{1}"), ("c", "x://y/z/{1}")},
    ),
}


@pytest.mark.parametrize("case", DISPUTED)
def test_a_template_is_disputed_where_another_server_has_what_begins_like_it(case: str) -> None:
    templates, uris, found = DISPUTED[case]
    assert disputed(templates, uris) == found
    assert disputed(templates[::-1], uris[::-1]) == found


owned = st.tuples(st.sampled_from("abc"), st.text("xy{}*", max_size=4))


@given(st.sets(owned, max_size=12), st.sets(owned, max_size=6))
def test_disputes_are_found_as_by_comparing_each_with_each(templates: set[Owned], uris: set[Owned]) -> None:
    def begins(template: str) -> str:
        return glob(template).text.split("*")[0]

    def is_disputed(server: str, begin: str) -> bool:
        others = [begins(other) for owner, other in templates if owner != server]
        made = any(begin.startswith(other) or other.startswith(begin) for other in others)
        listed = any(uri.startswith(begin) for owner, uri in uris if owner != server)
        return made or listed or "viaduct://".startswith(begin)

    assert disputed(templates, uris) == {one for one in templates if is_disputed(one[0], begins(one[1]))}
