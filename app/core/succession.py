"""What becomes of each server when another configuration takes the place of the one that runs.

A server is known by its name, and is the same where its settings are equal. One that changed is the old one removed and
a new one added at once.
"""

from collections.abc import Mapping

from msgspec import Struct


class Succession(Struct, frozen=True):
    """Names, each in one of these; in the order of the configuration that they are in."""

    kept: tuple[str, ...] = ()
    added: tuple[str, ...] = ()
    changed: tuple[str, ...] = ()
    removed: tuple[str, ...] = ()


def succession(former: Mapping[str, object], following: Mapping[str, object]) -> Succession:
    return Succession(
        kept=tuple(name for name, server in following.items() if name in former and former[name] == server),
        added=tuple(name for name in following if name not in former),
        changed=tuple(name for name, server in following.items() if name in former and former[name] != server),
        removed=tuple(name for name in former if name not in following),
    )
