"""Which of the servers' things a client sees, and under which names and words: what an operator chose.

A kind (tools, prompts, resources) that no `allow` speaks of is there whole. What is denied is not there, whatever else
is said of it.
"""

from collections.abc import Mapping, Sequence
from functools import cached_property

from msgspec import Struct
from msgspec.structs import replace

from app.core.targets import Kind, Pattern, Target, spellings

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


class Shaping(Struct, frozen=True, dict=True):
    """`choices` are those of the servers and then of the group: what one takes away no other gives back, and of several
    changes the last that says something counts."""

    choices: tuple[Choice, ...] = ()
    tags: Mapping[str, frozenset[str]] = {}
    """Of servers."""
    wanted: tuple[frozenset[str], ...] = ()
    """Sets of tags, of each of which one is enough; with none, all is wanted."""

    def keeps(self, target: Target) -> bool:
        return self._wants(target) and self._is_enabled(target) and self._lets_through(target)

    def known_tags(self) -> frozenset[str]:
        """All that something is tagged with."""
        changed = (change.tags for choice in self.choices for change in choice.changes.values())
        return _UNTAGGED.union(*self.tags.values(), *changed)

    def among(self, tags: frozenset[str]) -> "Shaping":
        """The same, of which only that is wanted which has one of these tags, too."""
        return replace(self, wanted=tuple(dict.fromkeys((*self.wanted, tags))))

    def change(self, target: Target) -> Change:
        return self._changes.get(target, UNCHANGED)

    def _wants(self, target: Target) -> bool:
        if not self.wanted:
            return True
        tags = self.tags.get(target.server, _UNTAGGED) | self.change(target).tags
        return not any(wanted.isdisjoint(tags) for wanted in self.wanted)

    def _is_enabled(self, target: Target) -> bool:
        if target.kind != "resources":
            return self.change(target).enabled
        disabled = self._disabled.get(target.server)
        return disabled is None or disabled.isdisjoint(spellings(target.name) or disabled)

    def _lets_through(self, target: Target) -> bool:
        if not self.choices:
            return True
        about = self._about.get((target.server, target.kind))
        if about is None:
            about = self._about[target.server, target.kind] = self._patterns(target.server, target.kind)
        return all(_is_let_through(choice, target) for choice in about)

    def _patterns(self, server: str, kind: Kind) -> tuple[Choice, ...]:
        """What the choices say of one kind of a server's things."""
        found = (Choice(_of(choice.allow, server, kind), _of(choice.deny, server, kind)) for choice in self.choices)
        return tuple(choice for choice in found if choice.allow or choice.deny)

    @cached_property
    def _about(self) -> dict[tuple[str, Kind], tuple[Choice, ...]]:
        """Every thing of every list is judged, and most choices are about one server."""
        return {}

    @cached_property
    def _changes(self) -> dict[Target, Change]:
        found: dict[Target, Change] = {}
        for choice in self.choices:
            for target, change in choice.changes.items():
                found[target] = _over(found.get(target, UNCHANGED), change)
        return found

    @cached_property
    def _disabled(self) -> dict[str, set[str]]:
        """Resources of servers, in all that they may be called."""
        found: dict[str, set[str]] = {}
        for target, change in self._changes.items():
            if target.kind == "resources" and not change.enabled:
                found.setdefault(target.server, set()).update(spellings(target.name) or (target.name,))
        return found


WHOLE = Shaping()
"""Everything, as the servers say it."""


def _of(patterns: Sequence[Pattern], server: str, kind: Kind) -> tuple[Pattern, ...]:
    return tuple(pattern for pattern in patterns if pattern.is_of(server) and pattern.kind in {None, kind})


def _is_let_through(choice: Choice, target: Target) -> bool:
    """A resource is what any reader of its URI may take it for, unless an operator wrote this very URI."""
    is_meant = any(pattern.kind is None or pattern.name.text == target.name for pattern in choice.allow)
    if is_meant and not choice.deny:
        return True
    names = (target.name,) if target.kind != "resources" else spellings(target.name) or ()
    each = [target._replace(name=name) for name in names]
    if not each or any(_any(choice.deny, one) for one in each):
        return False
    return is_meant or not choice.allow or all(_any(choice.allow, one) for one in each)


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
