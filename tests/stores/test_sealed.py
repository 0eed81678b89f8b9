"""Only who knows a session's id can read what is kept of it, and only where it was put."""

import pytest

from app.stores.sealed import Key, Unreadable, name_of


def test_what_was_sealed_is_read_with_the_same_id_at_the_same_place() -> None:
    sealed = Key("one").seal(b"said", b"here")
    assert b"said" not in sealed
    assert Key("one").unseal(sealed, b"here") == b"said"


def test_no_two_seals_are_alike() -> None:
    key = Key("one")
    assert key.seal(b"said", b"here") != key.seal(b"said", b"here")


def test_elsewhere_or_with_another_id_or_torn_it_is_unreadable() -> None:
    key = Key("one")
    sealed = key.seal(b"said", b"here")
    for other, text, place in (
        (Key("two"), sealed, b"here"),
        (key, sealed, b"there"),
        (key, sealed[:-1], b"here"),
        (key, sealed[:5], b"here"),
        (key, b"", b"here"),
    ):
        with pytest.raises(Unreadable):
            other.unseal(text, place)


def test_the_name_of_a_session_is_not_its_id_and_always_the_same() -> None:
    assert Key("one").name == name_of("one")
    assert name_of("one") != name_of("two")
    assert b"one" not in name_of("one")
