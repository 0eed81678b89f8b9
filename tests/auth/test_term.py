"""The time of a token, and who is told when it is over."""

import contextlib

from app.auth.term import How, Term


def test_all_who_watch_are_told_once_how_it_ended() -> None:
    term, told = Term(), []

    def first(how: How) -> None:
        told.append(("first", how))

    def second(how: How) -> None:
        told.append(("second", how))

    term.watch(first)
    term.watch(second)
    term.end("revoked")
    term.end("expired")
    assert sorted(told) == [("first", "revoked"), ("second", "revoked")]
    assert (term.how, term.is_watched) == ("revoked", False)


def test_who_comes_too_late_is_told_at_once() -> None:
    term, told = Term(), []
    term.end("expired")
    term.watch(told.append)
    assert told == ["expired"]


def test_who_has_left_is_not_told() -> None:
    term, told = Term(), []
    term.watch(told.append)
    term.unwatch(told.append)
    term.unwatch(told.append)
    term.end("expired")
    assert told == []


def test_one_who_fails_does_not_keep_it_from_the_others() -> None:
    term, told = Term(), []

    def failing(_how: How) -> None:
        raise ValueError("a bug")

    term.watch(failing)
    term.watch(told.append)
    with contextlib.suppress(ValueError):
        term.end("revoked")
    term.end("expired")
    assert told == ["revoked"]
