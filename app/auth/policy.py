"""Who may do what: rules over scopes, subjects and claims, judged without a clock and without I/O.

A principal has what any of its matching rules allow, less what any of them denies. Principals that are alike in all
that the rules look at have one and the same `Rights`, in which every decision is taken once.
"""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import NamedTuple, TypeAlias

from app.auth.principal import Principal
from app.core.targets import Glob, Pattern, Target, spellings

EVERYTHING = "*"
"""The scope that stands for all."""
_KEPT_MAX = 4096
_KEPT_CHARACTERS = 256


@dataclass(frozen=True, slots=True, kw_only=True)
class Rule:
    """One entry of a policy; what is empty restricts nothing. `read_only` and `destructive` are about its tools:
    whether only those that change nothing, and whether those that may destroy something, are allowed by it."""

    scopes: frozenset[str] = frozenset()
    subjects: tuple[str, ...] = ()
    claims: Mapping[str, str] = field(default_factory=dict)
    allow: tuple[str, ...] = ()
    deny: tuple[str, ...] = ()
    read_only: bool = False
    destructive: bool = True
    per_minute: int | None = None
    concurrent: int | None = None


class Hints(NamedTuple):
    """What a server says of a tool (2025-11-25, server/tools: "ToolAnnotations")."""

    read_only: bool = False
    destructive: bool = True

    @classmethod
    def said(cls, read_only: object, destructive: object) -> "Hints":
        """Of a tool that says this of itself: what only reads destroys nothing, whatever else it says."""
        if read_only is True:
            return cls(read_only=True, destructive=False)
        return cls(read_only=False, destructive=destructive is not False)


UNKNOWN = Hints()
"""Of a tool that was not listed, the worst is assumed."""


class Decision(NamedTuple):
    """`scopes` are all with which it would be allowed, where there are such: those that are had already, too."""

    is_allowed: bool
    scopes: tuple[str, ...] = ()


class Limits(NamedTuple):
    """None is no limit."""

    per_minute: int | None = None
    concurrent: int | None = None


NO_LIMITS = Limits()
ALLOWED = Decision(is_allowed=True)
DENIED = Decision(is_allowed=False)


class _Compiled:
    __slots__ = ("allow", "claims", "deny", "rule", "subjects")

    def __init__(self, rule: Rule) -> None:
        self.rule = rule
        self.allow = tuple(map(Pattern, rule.allow))
        self.deny = tuple(map(Pattern, rule.deny))
        self.subjects = tuple(map(Glob, rule.subjects))
        self.claims = tuple(rule.claims.items())

    @property
    def is_conditional(self) -> bool:
        return self.rule.read_only or not self.rule.destructive

    def is_about(self, who: "_Who") -> bool:
        """But for its scopes."""
        if self.subjects and not any(subject.matches(who.subject) for subject in self.subjects):
            return False
        said = dict(who.claims)
        return all(_says(said.get(name), value) for name, value in self.claims)

    def is_met_by(self, scopes: frozenset[str]) -> bool:
        return EVERYTHING in scopes or self.rule.scopes <= scopes

    def allows(self, target: Target) -> bool:
        return any(pattern.matches(target) for pattern in self.allow)

    def denies(self, target: Target) -> bool:
        return any(pattern.matches(target) for pattern in self.deny)


_Value: TypeAlias = str | tuple[str, ...] | None


class _Who(NamedTuple):
    scopes: frozenset[str]
    subject: str
    claims: tuple[tuple[str, _Value], ...]
    """Those that some rule looks at."""


class Policy:
    """
    Raises:
        ValueError: a pattern names nothing.
    """

    def __init__(self, rules: Iterable[Rule]) -> None:
        self._rules = tuple(map(_Compiled, rules))
        self._claims = tuple(sorted({name for each in self._rules for name, _ in each.claims}))
        self._scopes = frozenset().union(*(each.rule.scopes for each in self._rules))
        self._kept: dict[_Who, Rights] = {}
        self.reads_hints = any(each.is_conditional for each in self._rules)
        """Whether it matters what servers say of their tools."""

    def rights(self, principal: Principal) -> "Rights":
        claims = principal.claims
        subject = claims.get("sub")
        who = _Who(
            principal.scopes,
            subject if isinstance(subject, str) else principal.name,
            tuple((name, _plain(claims.get(name))) for name in self._claims) if self._claims else (),
        )
        return self._kept.get(who) or self._rights(who)

    def _rights(self, who: _Who) -> "Rights":
        about = [each for each in self._rules if each.is_about(who)]
        mine = [each for each in about if each.is_met_by(who.scopes)]
        further = [each.rule.scopes for each in about if not each.is_met_by(who.scopes)]

        def wider(scopes: frozenset[str]) -> Rights:
            more = who._replace(scopes=who.scopes | scopes)
            return self._kept.get(more) or self._rights(more)

        if len(self._kept) >= _KEPT_MAX:
            self._kept.clear()
        rights = self._kept[who] = Rights(mine, further, wider, who.scopes & self._scopes)
        return rights


class Rights:
    """Of all principals that are alike. `further` are sets of scopes that would give them more, by `wider`.

    Those that are `held` are named with them: some clients ask for just what they are told, and would lose the others.
    """

    def __init__(
        self,
        rules: Iterable[_Compiled],
        further: Iterable[frozenset[str]],
        wider: Callable[[frozenset[str]], "Rights"],
        held: frozenset[str] = frozenset(),
    ) -> None:
        self._rules = tuple(rules)
        self._further = tuple(further)
        self._wider = wider
        self._held = held
        self._kept: dict[Target, tuple[Hints, ...]] = {}
        self.limits = Limits(
            _least(each.rule.per_minute for each in self._rules), _least(each.rule.concurrent for each in self._rules)
        )

    def decide(self, target: Target, hints: Hints | None = None) -> Decision:
        """Whether the target may be used. Nothing of another scope is known where that would not help."""
        known = hints or UNKNOWN
        return ALLOWED if self.allows(target, known) else self._denied(lambda more: more.allows(target, known))

    def allows(self, target: Target, hints: Hints = UNKNOWN) -> bool:
        needs = self._kept.get(target)
        if needs is None:
            needs = self._needs(target)
            if len(target.name) <= _KEPT_CHARACTERS:
                if len(self._kept) >= _KEPT_MAX:
                    self._kept.clear()
                self._kept[target] = needs
        for need in needs:  # noqa: SIM110 - every call comes by here
            if hints.read_only >= need.read_only and hints.destructive <= need.destructive:
                return True
        return False

    def enter(self, server: str) -> Decision:
        """Whether there may be anything at a server to be used."""
        if self._enters(server):
            return ALLOWED
        return self._denied(lambda more: more._enters(server))

    def has_all(self, server: str) -> bool:
        """Whether everything there may be used, so that what we cannot judge may be, too."""
        if any(pattern.is_of(server) for each in self._rules for pattern in each.deny):
            return False
        return any(
            pattern.kind is None and pattern.is_of(server)
            for each in self._rules
            if not each.is_conditional
            for pattern in each.allow
        )

    def _denied(self, would_do: Callable[["Rights"], bool]) -> Decision:
        for scopes in self._further:
            if would_do(self._wider(scopes)):
                return Decision(is_allowed=False, scopes=tuple(sorted(self._held | scopes)))
        return DENIED

    def _needs(self, target: Target) -> tuple[Hints, ...]:
        """What a tool must at least be, for each rule that would allow it; the worst is good for any tool."""
        if target.kind != "resources":
            return self._needs_as(target)
        names = spellings(target.name)
        if names is None:
            return ()
        each = [self._needs_as(target._replace(name=name)) for name in names]
        return each[0] if all(each) else ()

    def _needs_as(self, target: Target) -> tuple[Hints, ...]:
        if any(each.denies(target) for each in self._rules):
            return ()
        is_tool = target.kind == "tools"
        return tuple(
            dict.fromkeys(
                Hints(each.rule.read_only, each.rule.destructive) if is_tool else UNKNOWN
                for each in self._rules
                if each.allows(target)
            )
        )

    def _enters(self, server: str) -> bool:
        if any(pattern.kind is None and pattern.is_of(server) for each in self._rules for pattern in each.deny):
            return False
        return any(pattern.is_of(server) for each in self._rules for pattern in each.allow)


def _plain(value: object) -> _Value:
    """A claim as it can be compared; numbers and truth values too."""
    if isinstance(value, list | tuple):
        return tuple(text for each in value if isinstance(text := _plain(each), str))
    if isinstance(value, bool):
        return "true" if value else "false"
    return str(value) if isinstance(value, str | int | float) else None


def _says(said: _Value, value: str) -> bool:
    return value in said if isinstance(said, tuple) else said == value


def _least(limits: Iterable[int | None]) -> int | None:
    return min((limit for limit in limits if limit is not None), default=None)
