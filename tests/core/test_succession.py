"""Which servers stay, when another configuration takes over."""

from hypothesis import given
from hypothesis import strategies as st

from app.core.succession import Succession, succession

configurations = st.dictionaries(st.sampled_from("abcdef"), st.integers(0, 2))


def test_a_server_is_kept_added_changed_or_removed() -> None:
    former = {"same": 1, "other": 1, "gone": 1}
    following = {"new": 1, "other": 2, "same": 1}
    assert succession(former, following) == Succession(("same",), ("new",), ("other",), ("gone",))


def test_where_every_server_is_the_same_none_is_touched() -> None:
    change = succession({"a": 1, "b": 2}, {"b": 2, "a": 1})
    assert change == Succession(kept=("b", "a"))


def test_a_name_that_is_written_otherwise_is_another_server() -> None:
    assert succession({"time": 1}, {"Time": 1}) == Succession(added=("Time",), removed=("time",))


@given(configurations, configurations)
def test_every_server_is_in_one_place(former: dict[str, int], following: dict[str, int]) -> None:
    change = succession(former, following)
    assert sorted(change.kept + change.changed + change.added) == sorted(following)
    assert sorted(change.kept + change.changed + change.removed) == sorted(former)
    assert (not (change.added or change.changed or change.removed)) == (former == following)
