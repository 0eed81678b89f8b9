"""What a URL's query says of servers that are one: `tags=dev,home` shows what has any of these tags, `mode=search` or
`mode=list` whether that is listed or found. Whatever else is in a query is not ours."""

from functools import lru_cache, partial
from typing import get_args
from urllib.parse import parse_qs

from app.edge.refusals import Refusal
from app.gateway.settings import JointSettings, Mode, UpstreamSettings, viewed

_KEPT_MAX = 64
_TOLD_MAX = 64
_MODES: dict[str, Mode] = {mode: mode for mode in get_args(Mode)}


class Views:
    """Of one joint; the same for the same query, as long as few others were wanted since."""

    def __init__(self, upstream: UpstreamSettings, joint: JointSettings) -> None:
        self._upstream = upstream
        self._known = joint.shaping.known_tags()
        self._view = lru_cache(_KEPT_MAX)(partial(viewed, upstream))

    def of(self, query: bytes) -> UpstreamSettings:
        """
        Raises:
            Refusal: it names what nothing has, or says one thing twice.
        """
        said = parse_qs(query.decode("latin-1"), keep_blank_values=True)
        tags = self._tags(said["tags"]) if "tags" in said else frozenset()
        mode = _mode(said["mode"]) if "mode" in said else None
        return self._view(tags, mode) if tags or mode else self._upstream

    def _tags(self, said: list[str]) -> frozenset[str]:
        """Named together or one by one."""
        tags = [tag.strip() for text in said for tag in text.split(",")]
        unknown = next((tag for tag in tags if tag not in self._known), None)
        if unknown is None:
            return frozenset(tags)
        there_are = f"there are {', '.join(sorted(self._known))}" if self._known else "nothing here has one"
        wrong = f"there is no tag {unknown[:_TOLD_MAX]!r}" if unknown else "tags must name tags"
        raise Refusal(400, "bad_query", f"{wrong}; {there_are}")


def _mode(said: list[str]) -> Mode:
    if len(said) > 1:
        raise Refusal(400, "bad_query", "mode is there more than once; name one")
    mode = _MODES.get(said[0])
    if mode is None:
        raise Refusal(400, "bad_query", f"mode must be {' or '.join(_MODES)}")
    return mode
