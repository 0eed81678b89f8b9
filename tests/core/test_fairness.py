"""Whose turn it is next."""

from app.core.fairness import Fairness, Rank, Shares, Wish, all_of, shares_of


def wish(owner: str | None, server: str = "fast", rank: Rank = Rank.NEW) -> Wish:
    return Wish(server, owner, rank)


def order(fair: Fairness, has: int) -> list[int]:
    """Who comes after whom, where only one can have it."""
    came = []
    following = fair.give_back(has)
    while following:
        (ticket,) = following
        came.append(ticket)
        following = fair.give_back(ticket)
    return came


def test_of_four_two_are_for_a_party_at_a_server_and_one_is_kept_for_others() -> None:
    assert shares_of(4, is_only_server=False) == Shares(count=4, pair=2, party=3, server=3)
    assert shares_of(4, is_only_server=True) == Shares(count=4, pair=2, party=3, server=4)
    assert shares_of(1, is_only_server=False) == all_of(1)


def test_one_who_wants_all_leaves_one_to_another() -> None:
    fair = Fairness(shares_of(4, is_only_server=False))
    asked = [fair.ask(ticket, wish("a", f"slow{ticket}")) for ticket in range(5)]
    assert asked == [[0], [1], [2], [], []]
    assert fair.ask(11, wish("b")) == [11]
    assert fair.is_full


def test_at_one_server_one_has_half_and_all_together_leave_one_to_another_server() -> None:
    fair = Fairness(shares_of(4, is_only_server=False))
    owners = ["a", "a", "a", "b", "c"]
    assert [fair.ask(at, wish(owner, "slow")) for at, owner in enumerate(owners)] == [[0], [1], [], [3], []]
    assert fair.ask(11, wish("d", "fast")) == [11]
    assert fair.give_back(0) == [4]


def test_where_one_was_given_back_two_may_come_for_different_reasons() -> None:
    fair = Fairness(shares_of(2, is_only_server=False))
    assert fair.ask(1, wish("a", "slow")) == [1]
    assert (fair.ask(2, wish("a", "fast")), fair.ask(3, wish("b", "slow"))) == ([], [])
    assert fair.give_back(1) == [3, 2]


def test_the_only_server_has_all_of_it() -> None:
    fair = Fairness(shares_of(2, is_only_server=True))
    assert [fair.ask(1, wish("a")), fair.ask(2, wish("a")), fair.ask(3, wish("b"))] == [[1], [], [3]]


def test_parties_take_turns_however_many_wishes_one_has() -> None:
    fair = Fairness(all_of(1))
    fair.ask(0, wish("z"))
    for ticket in (1, 2, 3):
        fair.ask(ticket, wish("a"))
    for ticket in (11, 12):
        fair.ask(ticket, wish("b"))
    assert order(fair, 0) == [1, 11, 2, 12, 3]


def test_a_party_that_has_less_comes_first() -> None:
    fair = Fairness(all_of(3))
    for ticket, owner in enumerate(["a", "a", "b"]):
        fair.ask(ticket, wish(owner))
    assert (fair.ask(11, wish("a")), fair.ask(12, wish("b"))) == ([], [])
    assert fair.give_back(2) == [12]


def test_within_a_party_its_servers_take_turns() -> None:
    fair = Fairness(all_of(1))
    fair.ask(0, wish("z"))
    for ticket, server in enumerate(["slow", "slow", "slow", "fast"], 1):
        fair.ask(ticket, wish("a", server))
    assert order(fair, 0) == [1, 4, 2, 3]


def test_what_is_in_place_of_a_dead_one_comes_before_what_is_new() -> None:
    fair = Fairness(all_of(1))
    fair.ask(0, wish("z"))
    fair.ask(1, wish("a"))
    fair.ask(2, wish("b", rank=Rank.IN_PLACE))
    fair.ask(3, wish("a", rank=Rank.IN_PLACE))
    assert order(fair, 0) == [2, 3, 1]


def test_who_dies_again_and_again_does_not_keep_others_waiting() -> None:
    fair = Fairness(all_of(1))
    fair.ask(0, wish("a", rank=Rank.IN_PLACE))
    fair.ask(1, wish("b"))
    fair.ask(2, wish("a", rank=Rank.IN_PLACE))
    assert order(fair, 0) == [1, 2]


def test_what_nobody_waits_for_comes_last_of_all() -> None:
    fair = Fairness(all_of(1))
    fair.ask(0, wish("z"))
    fair.ask(1, wish("", rank=Rank.FOR_LATER))
    fair.ask(2, wish("a"))
    fair.ask(3, wish("a"))
    assert order(fair, 0) == [2, 3, 1]


def test_who_is_forsaken_comes_last_and_who_is_wanted_again_does_not() -> None:
    fair = Fairness(all_of(1))
    fair.ask(0, wish("z"))
    for ticket, owner in enumerate("abc", 1):
        fair.ask(ticket, wish(owner))
    fair.rank(1, Rank.FOR_LATER)
    fair.rank(2, Rank.FOR_LATER)
    fair.rank(1, Rank.NEW)
    assert order(fair, 0) == [1, 3, 2]


def test_a_wish_of_nobody_is_its_servers() -> None:
    fair = Fairness(all_of(1))
    fair.ask(0, wish("z"))
    for ticket, server in enumerate(["one", "one", "two"], 1):
        fair.ask(ticket, wish(None, server))
    assert order(fair, 0) == [1, 3, 2]


def test_who_takes_back_a_wish_is_passed_over_and_nothing_is_remembered() -> None:
    fair, fresh = Fairness(all_of(1)), Fairness(all_of(1))
    fair.ask(1, wish("a"))
    fair.ask(2, wish("b"))
    fair.ask(3, wish("c"))
    assert fair.give_back(2) == []
    assert fair.give_back(1) == [3]
    assert fair.give_back(3) == fair.give_back(3) == []
    assert (fair._parties, fair._pairs, fair._of_servers, fair.taken) == (fresh._parties, fresh._pairs, {}, 0)
