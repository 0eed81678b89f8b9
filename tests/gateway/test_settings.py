"""Views of servers that are one."""

from app.core.shaping import Shaping
from app.gateway.settings import JointSettings, UpstreamSettings, viewed
from app.upstreams.command import Command

GROUP = Shaping(tags={"git": frozenset({"dev"})}, wanted=(frozenset({"dev"}),))
JOINT = UpstreamSettings("/groups/a", Command(()), joint=JointSettings(("git",), shaping=GROUP))


def test_a_view_wants_what_its_group_wants_and_its_url() -> None:
    view = viewed(JOINT, frozenset({"home", "fun"}), "search").joint
    assert view is not None
    assert (view.mode, view.shaping.wanted) == ("search", (frozenset({"dev"}), frozenset({"home", "fun"})))


def test_a_view_without_wishes_is_the_same() -> None:
    assert viewed(JOINT, frozenset(), None) == JOINT


def test_views_that_differ_have_other_keys() -> None:
    views = [
        JOINT,
        viewed(JOINT, frozenset(), "search"),
        viewed(JOINT, frozenset({"home"}), None),
        viewed(JOINT, frozenset({"home", "fun"}), None),
        viewed(viewed(JOINT, frozenset({"home"}), None), frozenset({"fun"}), None),
    ]
    assert len({view.key for view in views}) == len(views)


def test_a_server_alone_has_no_views() -> None:
    alone = UpstreamSettings("git", Command(("true",)))
    assert viewed(alone, frozenset({"home"}), "search") is alone
