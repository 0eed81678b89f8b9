"""Which eras a server was found to speak.

Two answers, for one does not follow from the other: a server may speak both, and its first request then fixes the
era of that child only.
"""

from typing import Literal, TypeAlias

Era: TypeAlias = Literal["legacy", "modern"]
Setting: TypeAlias = Literal["auto", "legacy", "modern"]


class Eras:
    def __init__(self, setting: Setting = "auto") -> None:
        self._setting = setting
        self._speaks: dict[Era, bool | None] = {"legacy": None, "modern": None}

    @property
    def legacy(self) -> bool | None:
        """None where nobody knows yet."""
        return self._speaks["legacy"]

    @property
    def modern(self) -> bool | None:
        return self._speaks["modern"]

    def first_for(self, *, modern_client: bool) -> Era:
        """How to greet a child for such a client: in its own era, unless that was found to be in vain."""
        if self._setting != "auto":
            return self._setting
        own: Era = "modern" if modern_client else "legacy"
        return _other(own) if self._speaks[own] is False else own

    def may_try_other(self) -> bool:
        """Whether a child that does not speak the one era may be greeted in the other."""
        return self._setting == "auto"

    def learn(self, era: Era, *, speaks: bool) -> None:
        """A server that speaks neither has changed, or was unwell: the older answer of the two is forgotten."""
        self._speaks[era] = speaks
        if not speaks and self._speaks[_other(era)] is False:
            self._speaks[_other(era)] = None


def _other(era: Era) -> Era:
    return "legacy" if era == "modern" else "modern"
