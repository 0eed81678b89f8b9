"""Which child that nobody uses is given up, when somebody needs its place."""

from collections import Counter
from collections.abc import Collection

from msgspec import Struct


class Spare(Struct, frozen=True):
    """`holder` has it, `owner` is the principal whose it is, and it is idle since then."""

    holder: int
    owner: str
    since: float


def choose(spares: Collection[Spare], owner: str | None) -> Spare | None:
    """One of the owner's own, or else of who has most of them; of these the one that is idle for longest."""
    has = Counter(spare.owner for spare in spares)
    return min(spares, key=lambda spare: (spare.owner != owner, -has[spare.owner], spare.since), default=None)
