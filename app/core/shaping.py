"""Which of the servers' things a client sees, and under which names and words: what an operator chose.

A kind (tools, prompts, resources) that no `allow` speaks of is there whole. What is denied is not there, whatever else
is said of it.
"""

from collections.abc import Mapping, Sequence

from msgspec import Struct
from msgspec.structs import replace

from app.core.targets import Kind, Pattern, Target

_UNTAGGED: frozenset[str] = frozenset()


class Change(Struct, frozen=True):
    """Of one tool or prompt; what is empty stays as its server says."""

    name: str = ""
    title: str = ""
    description: str = ""
    enabled: bool = True
    tags: frozenset[str] = _UNTAGGED


UNCHANGED = Change()


class Choice(Struct, frozen=True):
    """`changes` are of what a policy would call so; a tool is meant unless it says otherwise."""

    allow: tuple[Pattern, ...] = ()
    deny: tuple[Pattern, ...] = ()
    changes: Mapping[Target, Change] = {}


class Shaping(Struct, frozen=True):
    """`choices` are those of the servers and then of the group: what one takes away no other gives back, and of several
    changes the last that says something counts."""

    choices: tuple[Choice, ...] = ()
    tags: Mapping[str, frozenset[str]] = {}
    """Of servers."""
    wanted: tuple[frozenset[str], ...] = ()
    """Sets of tags, of each of which one is enough; with none, all is wanted."""

    def keeps(self, target: Target) -> bool:
        if not all(_keeps(choice, target) for choice in self.choices):
            return False
        change = self.change(target)
        if not change.enabled:
            return False
        tags = self.tags.get(target.server, _UNTAGGED) | change.tags
        return not any(wanted.isdisjoint(tags) for wanted in self.wanted)

    def known_tags(self) -> frozenset[str]:
        """All that something is tagged with."""
        changed = (change.tags for choice in self.choices for change in choice.changes.values())
        return _UNTAGGED.union(*self.tags.values(), *changed)

    def among(self, tags: frozenset[str]) -> "Shaping":
        """The same, of which only that is wanted which has one of these tags, too."""
        return replace(self, wanted=tuple(dict.fromkeys((*self.wanted, tags))))

    def change(self, target: Target) -> Change:
        found = UNCHANGED
        for choice in self.choices:
            said = choice.changes.get(target)
            if said is not None:
                found = _over(found, said)
        return found


WHOLE = Shaping()
"""Everything, as the servers say it."""


def _keeps(choice: Choice, target: Target) -> bool:
    if _any(choice.deny, target):
        return False
    return not _speaks_of(choice.allow, target) or _any(choice.allow, target)


def _speaks_of(patterns: Sequence[Pattern], target: Target) -> bool:
    kinds: list[Kind | None] = [pattern.kind for pattern in patterns if pattern.is_of(target.server)]
    return target.kind in kinds or None in kinds


def _any(patterns: Sequence[Pattern], target: Target) -> bool:
    return any(pattern.matches(target) for pattern in patterns)


def _over(first: Change, later: Change) -> Change:
    return Change(
        later.name or first.name,
        later.title or first.title,
        later.description or first.description,
        first.enabled and later.enabled,
        first.tags | later.tags,
    )
