"""What is said to an operator of names that two servers' things have."""

from collections.abc import Mapping, Sequence

from app.core.catalog import Conflict

_TOLD_MAX = 5


def disagreement(found: Mapping[str, Sequence[Conflict]]) -> str:
    """By where servers are one; one sentence, and nothing where there is none."""
    told = [f"{_spelt(conflict)} at {at}" for at, conflicts in found.items() for conflict in conflicts]
    if not told:
        return ""
    more = f", and {len(told) - _TOLD_MAX} more" if len(told) > _TOLD_MAX else ""
    names = ", ".join(told[:_TOLD_MAX]) + more
    return f"with naming none no two may have one name: {names}; change or deny one of each, or let naming be prefix"


def _spelt(conflict: Conflict) -> str:
    first, second = conflict.servers
    whose = f"{first} and {second}" if first != second else f"{first}, twice"
    return f"the {conflict.shelf.removesuffix('s')} {conflict.public!r} of {whose}"
