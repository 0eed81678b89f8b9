"""What an operator's choices leave of the servers' things, and what they make of it."""

import pytest

from app.core.shaping import WHOLE, Change, Choice, Shaping
from app.core.targets import Pattern, Target

STATUS = Target("git", "tools", "status")
RESET = Target("git", "tools", "reset")
PROMPT = Target("git", "prompts", "status")


def choice(*allow: str, deny: tuple[str, ...] = (), **changes: Change) -> Choice:
    changed = {Target("git", "tools", name): change for name, change in changes.items()}
    return Choice(tuple(map(Pattern, allow)), tuple(map(Pattern, deny)), changed)


def test_without_a_choice_everything_is_kept() -> None:
    assert WHOLE.keeps(STATUS)


def test_what_is_allowed_is_kept_and_of_other_kinds_all() -> None:
    shaping = Shaping((choice("git/st*"),))
    assert [shaping.keeps(target) for target in (STATUS, RESET, PROMPT)] == [True, False, True]


def test_what_one_choice_takes_away_no_other_gives_back() -> None:
    shaping = Shaping((choice(deny=("git/reset",)), choice("git/*")))
    assert (shaping.keeps(STATUS), shaping.keeps(RESET)) == (True, False)


def test_of_two_changes_the_later_counts_where_it_says_something() -> None:
    first = Change("a", "first", tags=frozenset({"x"}))
    later = Change("", "later", "words", tags=frozenset({"y"}))
    changed = Shaping((choice(status=first), choice(status=later))).change(STATUS)
    assert changed == Change("a", "later", "words", tags=frozenset({"x", "y"}))


def test_what_is_switched_off_is_not_there() -> None:
    assert not Shaping((choice(status=Change(enabled=False)), choice(status=Change(enabled=True)))).keeps(STATUS)


TAGGED = Shaping((choice(reset=Change(tags=frozenset({"danger"}))),), {"git": frozenset({"dev"})})


@pytest.mark.parametrize(
    ("wanted", "kept"),
    [
        ([{"dev"}], [True, True]),
        ([{"danger"}], [False, True]),
        ([{"home", "danger"}], [False, True]),
        ([{"home"}], [False, False]),
        ([{"dev"}, {"danger"}], [False, True]),
        ([{"danger"}, {"home"}], [False, False]),
    ],
)
def test_of_each_set_of_wanted_tags_one_must_be_there(wanted: list[set[str]], kept: list[bool]) -> None:
    shaping = TAGGED
    for tags in wanted:
        shaping = shaping.among(frozenset(tags))
    assert [shaping.keeps(target) for target in (STATUS, RESET)] == kept


def test_the_same_wish_twice_is_one() -> None:
    once = TAGGED.among(frozenset({"dev"}))
    assert once.among(frozenset({"dev"})) == once


def test_the_tags_of_servers_and_of_changes_are_known() -> None:
    assert TAGGED.known_tags() == {"dev", "danger"}
