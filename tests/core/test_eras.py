"""How a server is greeted first, and what is remembered of how it took that."""

import pytest

from app.core.eras import Era, Eras, Setting


@pytest.mark.parametrize(("modern_client", "first"), [(True, "modern"), (False, "legacy")])
def test_a_server_that_is_not_known_is_greeted_in_its_clients_era(modern_client: bool, first: Era) -> None:
    eras = Eras()
    assert (eras.legacy, eras.modern) == (None, None)
    assert eras.first_for(modern_client=modern_client) == first


@pytest.mark.parametrize("modern_client", [True, False])
@pytest.mark.parametrize(("era", "other"), [("modern", "legacy"), ("legacy", "modern")])
def test_a_server_that_does_not_speak_an_era_is_greeted_in_the_other(era: Era, other: Era, modern_client: bool) -> None:
    eras = Eras()
    eras.learn(era, speaks=False)
    assert eras.first_for(modern_client=modern_client) == other


@pytest.mark.parametrize(("modern_client", "first"), [(True, "modern"), (False, "legacy")])
def test_a_server_that_speaks_both_is_spoken_to_in_its_clients_era(modern_client: bool, first: Era) -> None:
    eras = Eras()
    eras.learn("legacy", speaks=True)
    eras.learn("modern", speaks=True)
    assert (eras.legacy, eras.modern) == (True, True)
    assert eras.first_for(modern_client=modern_client) == first


def test_that_a_server_speaks_the_other_era_is_no_answer_about_the_clients_own() -> None:
    eras = Eras()
    eras.learn("legacy", speaks=True)
    assert eras.first_for(modern_client=True) == "modern"


@pytest.mark.parametrize("modern_client", [True, False])
@pytest.mark.parametrize("setting", ["legacy", "modern"])
def test_what_is_set_is_done_whatever_was_found(setting: Setting, modern_client: bool) -> None:
    eras = Eras(setting)
    for era in ("legacy", "modern"):
        eras.learn(era, speaks=False)
        assert eras.first_for(modern_client=modern_client) == setting
    assert not eras.may_try_other()
    assert Eras().may_try_other()


@pytest.mark.parametrize(("era", "other"), [("modern", "legacy"), ("legacy", "modern")])
def test_when_a_server_seems_to_speak_neither_the_older_answer_is_forgotten(era: Era, other: Era) -> None:
    eras = Eras()
    eras.learn(era, speaks=False)
    eras.learn(other, speaks=False)
    assert {"legacy": eras.legacy, "modern": eras.modern} == {era: None, other: False}
    assert eras.first_for(modern_client=other == "modern") == era


@pytest.mark.parametrize(("era", "other"), [("modern", "legacy"), ("legacy", "modern")])
def test_an_answer_that_proves_wrong_is_replaced(era: Era, other: Era) -> None:
    eras = Eras()
    eras.learn(era, speaks=True)
    eras.learn(other, speaks=False)
    eras.learn(era, speaks=False)
    assert {"legacy": eras.legacy, "modern": eras.modern} == {era: False, other: None}
    eras.learn(era, speaks=True)
    assert {"legacy": eras.legacy, "modern": eras.modern} == {era: True, other: None}
