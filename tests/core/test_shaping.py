"""What an operator chose that clients see."""

from typing import get_args

import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.core.shaping import UNCHANGED, WHOLE, Change, Choice, Shaping
from app.core.targets import Kind, Pattern, Target

COMMIT = Target("git", "tools", "git_commit")
STATUS = Target("git", "tools", "git_status")
REVIEW = Target("git", "prompts", "review")
README = Target("git", "resources", "file:///repo/README.md")
NOW = Target("time", "tools", "now")
ALL = (COMMIT, STATUS, REVIEW, README, NOW)


def choice(*, allow: str = "", deny: str = "", changes: dict[Target, Change] | None = None) -> Choice:
    return Choice(tuple(map(Pattern, allow.split())), tuple(map(Pattern, deny.split())), changes or {})


def kept(*choices: Choice) -> tuple[Target, ...]:
    return tuple(target for target in ALL if Shaping(choices).keeps(target))


def test_without_a_choice_everything_is_there_as_its_server_says_it() -> None:
    assert all(map(WHOLE.keeps, ALL))
    assert WHOLE.change(COMMIT) == UNCHANGED


KEPT = {
    "what is allowed of a kind": (choice(allow="git/git_s*"), (STATUS, REVIEW, README, NOW)),
    "one thing alone": (choice(allow="git/git_commit"), (COMMIT, REVIEW, README, NOW)),
    "a whole server": (choice(allow="git"), ALL),
    "prompts": (choice(allow="git/prompts/none"), (COMMIT, STATUS, README, NOW)),
    "all but what is denied": (choice(deny="git/*commit"), (STATUS, REVIEW, README, NOW)),
    "no whole server": (choice(deny="git"), (NOW,)),
    "of all servers": (choice(deny="*/*o*"), (STATUS, REVIEW, README)),
    "what is allowed and denied": (choice(allow="git/git_*", deny="git/*commit"), (STATUS, REVIEW, README, NOW)),
    "what is denied and allowed whole": (choice(allow="git", deny="git/*commit"), (STATUS, REVIEW, README, NOW)),
    "resources below": (choice(allow="git/resources/file:///repo/*"), ALL),
    "no resources but others": (choice(allow="git/resources/file:///other/*"), (COMMIT, STATUS, REVIEW, NOW)),
}


@pytest.mark.parametrize("case", KEPT)
def test_patterns_say_what_is_there(case: str) -> None:
    chosen, targets = KEPT[case]
    assert kept(chosen) == targets


def test_what_one_choice_takes_away_no_other_gives_back() -> None:
    assert kept(choice(deny="git/git_commit"), choice(allow="git/git_commit")) == (REVIEW, README, NOW)


@given(st.permutations([choice(allow="git/git_*"), choice(deny="*/*s"), choice(allow="git"), choice(deny="time")]))
def test_what_is_there_does_not_depend_on_the_order_of_the_choices(choices: list[Choice]) -> None:
    assert kept(*choices) == (COMMIT, REVIEW, README)


def test_what_is_switched_off_is_not_there() -> None:
    off = choice(changes={COMMIT: Change(enabled=False), README: Change(enabled=False)})
    assert kept(off) == (STATUS, REVIEW, NOW)
    assert kept(off, choice(allow="git", changes={COMMIT: Change(name="commit")})) == (STATUS, REVIEW, NOW)


def test_of_several_changes_the_last_that_says_something_counts() -> None:
    first = choice(changes={COMMIT: Change(name="commit", title="Commit", tags=frozenset({"dev"}))})
    later = choice(changes={COMMIT: Change(title="Keep", description="Keeps it.", tags=frozenset({"ops"}))})
    shaping = Shaping((first, later))
    assert shaping.change(COMMIT) == Change("commit", "Keep", "Keeps it.", tags=frozenset({"dev", "ops"}))
    assert shaping.change(STATUS) == UNCHANGED
    assert shaping.change(Target("git", "prompts", "git_commit")) == UNCHANGED


TAGGED = Shaping(
    (choice(changes={STATUS: Change(tags=frozenset({"daily"})), NOW: Change(enabled=False)}),),
    {"git": frozenset({"dev", "vcs"}), "time": frozenset({"daily"})},
)
WANTED = {
    (): (COMMIT, STATUS, REVIEW, README),
    ("dev",): (COMMIT, STATUS, REVIEW, README),
    ("dev none",): (COMMIT, STATUS, REVIEW, README),
    ("daily",): (STATUS,),
    ("none",): (),
    ("dev", "daily"): (STATUS,),
    ("dev", "none"): (),
}


@pytest.mark.parametrize("wanted", WANTED)
def test_any_of_the_wanted_tags_of_a_server_or_of_a_tool_is_enough_each_time(wanted: tuple[str, ...]) -> None:
    shaping = TAGGED
    for tags in wanted:
        shaping = shaping.among(frozenset(tags.split()))
    assert tuple(filter(shaping.keeps, ALL)) == WANTED[wanted]


def test_the_same_wish_twice_is_one() -> None:
    once = TAGGED.among(frozenset({"dev"}))
    assert once.among(frozenset({"dev"})) == once
    assert once.choices == TAGGED.choices


def test_the_tags_of_servers_and_of_changes_are_known() -> None:
    assert TAGGED.known_tags() == {"dev", "vcs", "daily"}
    assert WHOLE.known_tags() == frozenset()


SAME = [
    "file:///repo/secret/key",
    "FILE:///repo/secret/key",
    "file:///repo/open/../secret/key",
    "file:///repo//secret/./key",
    "file:///repo/%73ecret/key",
    "file:///repo/%2573ecret/key",
    "file:///repo\\secret\\key",
    "file://localhost/repo/secret/key",
]


@pytest.mark.parametrize("uri", SAME)
@pytest.mark.parametrize(
    "chosen",
    [
        choice(deny="git/resources/file:///repo/secret/*"),
        choice(allow="git/resources/file:///repo/open/*"),
        choice(changes={Target("git", "resources", SAME[0]): Change(enabled=False)}),
    ],
    ids=["denied", "not allowed", "off"],
)
def test_a_resource_is_not_there_however_it_is_spelt(chosen: Choice, uri: str) -> None:
    assert not Shaping((chosen,)).keeps(Target("git", "resources", uri))


@pytest.mark.parametrize("uri", ["memo://Insights", "Memo:insights/", "file:///a b", "x://%25%32%35%32%35"])
def test_a_resource_is_there_by_the_very_uri_that_is_allowed_where_that_can_be_told(uri: str) -> None:
    target = Target("git", "resources", uri)
    assert Shaping((choice(changes={COMMIT: Change(enabled=False)}),)).keeps(target)
    assert Shaping((choice(allow="git"),)).keeps(target)
    assert Shaping((choice(allow="git/git_*", deny="git/*commit"),)).keeps(target)
    exactly = Choice((Pattern("git/prompts/*"), Pattern(f"git/resources/{uri}")))
    assert Shaping((exactly,)).keeps(target)
    assert not Shaping((exactly,)).keeps(target._replace(name=uri + "x"))


def test_what_is_switched_off_is_so_by_every_spelling_of_its_host() -> None:
    off = choice(changes={Target("git", "resources", "memo://Insights"): Change(enabled=False)})
    assert not Shaping((off,)).keeps(Target("git", "resources", "MEMO://insights"))


def test_a_resource_of_which_nobody_can_tell_what_it_is_counts_as_denied_where_some_are() -> None:
    target = Target("git", "resources", "file:///a b")
    assert not Shaping((choice(deny="git/resources/file:///secret/*"),)).keeps(target)
    assert not Shaping((choice(changes={README: Change(enabled=False)}),)).keeps(target)
    assert Shaping((choice(deny="other/resources/*", changes={README: Change(title="x")}),)).keeps(target)


some_patterns = st.lists(
    st.sampled_from(["git", "*", "git/a*", "*/tools/*b", "g*/prompts/ab", "git/resources/a*", "time/*"]).map(Pattern),
    max_size=3,
).map(tuple)
some_targets = st.builds(
    Target, st.sampled_from(["git", "time"]), st.sampled_from(get_args(Kind)), st.sampled_from(["a", "ab", "b", ""])
)


@given(st.lists(st.builds(Choice, some_patterns, some_patterns), max_size=3), some_targets)
def test_patterns_mean_what_is_said_of_them(choices: list[Choice], target: Target) -> None:
    def lets_through(choice: Choice) -> bool:
        speaks = any(each.is_of(target.server) and each.kind in (None, target.kind) for each in choice.allow)
        is_denied = any(each.matches(target) for each in choice.deny)
        return not is_denied and (not speaks or any(each.matches(target) for each in choice.allow))

    shaping = Shaping(tuple(choices))
    assert [shaping.keeps(target) for _ in range(2)] == [all(map(lets_through, choices))] * 2
