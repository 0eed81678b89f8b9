"""A server's lists, as far as it can be made to give them."""

from itertools import count

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec import Raw
from msgspec.structs import replace

from app.core import reading
from app.core.inventory import LISTED, Shelf, items
from app.core.reading import Reading
from app.protocol.jsonrpc import Failure, Reply, Request, Result, payload
from tests.core.inventories import SHELVES, item, offers, raw

BEFORE = offers(tools=["old"], prompts=["kept"])


def begun(*shelves: Shelf, pages_max: int = 100) -> tuple[Reading, Request]:
    begun = Reading(count(1), BEFORE, shelves or ("tools",), pages_max)
    return begun, begun.begin()[0]


def tools(ident: int, *names: str, **more: object) -> Result:
    return Result(ident, raw({"tools": [{"name": name} for name in names], **more}))


def test_each_list_is_asked_for_from_its_beginning() -> None:
    listing = Reading(count(7), BEFORE, SHELVES)
    assert listing.begin() == [
        Request(7 + number, LISTED[shelf].method, payload({})) for number, shelf in enumerate(SHELVES)
    ]
    assert not listing.is_over
    assert [listing.expects(ident) for ident in (6, 7, 10, 11, None, "7")] == [False, True, True, False, False, False]


def test_of_no_lists_nothing_is_asked() -> None:
    listing = Reading(count(1), BEFORE, ())
    assert (listing.begin(), listing.is_over, listing.inventory) == ([], True, BEFORE)


def test_all_pages_are_read_in_their_order() -> None:
    listing, _ = begun()
    assert listing.receive(tools(1, "a", nextCursor="x")) == [Request(2, "tools/list", payload({"cursor": "x"}))]
    assert listing.inventory == BEFORE
    assert listing.receive(tools(2, "b", nextCursor="y")) == [Request(3, "tools/list", payload({"cursor": "y"}))]
    assert listing.receive(tools(3, "c")) == []
    assert listing.is_over
    assert listing.inventory == offers(tools=["a", "b", "c"], prompts=["kept"])


@pytest.mark.parametrize("cursor", ["", None, 1, ["x"]])
def test_what_is_no_cursor_ends_the_list(cursor: object) -> None:
    listing, _ = begun()
    assert listing.receive(tools(1, "a", nextCursor=cursor)) == []
    assert listing.inventory.tools == (item("tools", "a"),)


def test_a_cursor_that_comes_again_ends_the_list() -> None:
    listing, _ = begun()
    assert len(listing.receive(tools(1, "a", nextCursor="x"))) == 1
    assert len(listing.receive(tools(2, "b", nextCursor="y"))) == 1
    assert listing.receive(tools(3, "c", nextCursor="x")) == []
    assert listing.inventory.tools == tuple(item("tools", name) for name in "abc")


def test_pages_without_an_end_are_read_up_to_a_number() -> None:
    listing, request = begun(pages_max=3)
    requests, asked = [request], 0
    while requests:
        [request] = requests
        asked += 1
        requests = listing.receive(tools(asked, f"t{asked}", nextCursor=f"c{asked}"))
    assert (asked, len(listing.inventory.tools)) == (3, 3)


def test_a_list_ends_with_the_page_that_is_too_much(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(reading, "BYTES_MAX", 100)
    listing, _ = begun()
    assert len(listing.receive(tools(1, "a", nextCursor="x"))) == 1
    assert listing.receive(tools(2, "b" * 100, nextCursor="y")) == []
    assert listing.inventory.tools == (item("tools", "a"), item("tools", "b" * 100))


UNREADABLE = [b"null", b"[]", b"1", b"{}", b'{"tools": null}', b'{"tools": {"name": "x"}}', b'{"prompts": []}']


@pytest.mark.parametrize("page", UNREADABLE)
def test_what_is_no_page_leaves_what_was_known(page: bytes) -> None:
    listing, _ = begun()
    assert listing.receive(Result(1, Raw(page))) == []
    assert (listing.is_over, listing.inventory) == (True, BEFORE)
    listing, _ = begun()
    listing.receive(tools(1, "a", nextCursor="x"))
    assert listing.receive(Result(2, Raw(page))) == []
    assert (listing.is_over, listing.inventory) == (True, BEFORE)


def test_an_empty_list_is_one() -> None:
    listing, _ = begun()
    assert listing.receive(tools(1)) == []
    assert listing.inventory == replace(BEFORE, tools=())


def test_a_list_that_fails_stays_as_it_was_and_the_others_are_read() -> None:
    listing, _ = begun("tools", "prompts")
    assert listing.receive(Failure(1, payload({"code": -32601, "message": "no"}))) == []
    assert not listing.is_over
    assert listing.receive(Result(2, raw({"prompts": [{"name": "new"}]}))) == []
    assert (listing.is_over, listing.inventory) == (True, offers(tools=["old"], prompts=["new"]))


def test_what_is_given_up_is_expected_no_more_and_stays_as_it_was() -> None:
    listing, _ = begun("tools", "prompts")
    listing.receive(tools(1, "a"))
    assert listing.give_up() == [2]
    assert (listing.is_over, listing.expects(2)) == (True, False)
    assert listing.inventory == offers(tools=["a"], prompts=["kept"])


cursors = st.none() | st.text(max_size=2)
replies = st.builds(
    lambda names, cursor: raw({"tools": [{"name": name} for name in names], "nextCursor": cursor}),
    st.lists(st.text(max_size=2), max_size=3),
    cursors,
) | st.sampled_from([Raw(page) for page in UNREADABLE])


@given(st.lists(replies | st.none(), max_size=12), st.integers(1, 5))
def test_whatever_a_server_answers_there_is_an_end_and_a_list_is_replaced_whole(
    said: list[Raw | None], pages_max: int
) -> None:
    """None is a failure."""
    listing, request = begun(pages_max=pages_max)
    asked, names = 0, list[str]()
    for answer in (*said, payload({"tools": []})):
        asked += 1
        reply: Reply = Failure(request.id, payload({})) if answer is None else Result(request.id, answer)
        requests = listing.receive(reply)
        names += [tool.name for tool in items("tools", answer or payload({}))]
        if not requests:
            break
        [request] = requests
    assert listing.is_over
    assert asked <= pages_max
    assert [tool.name for tool in listing.inventory.tools] in (["old"], names)
