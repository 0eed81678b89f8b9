"""The specification's revisions, one row each: whatever differs between them is a column here, never a branch."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Revision:
    date: str
    modern: bool = False
    """Stateless: every request carries its version and the client's capabilities (2026-07-28)."""
    batches: bool = False
    """A POST's body may be an array (2025-03-26, basic/transports: "Sending Messages to the Server")."""
    primes: bool = False
    """A stream begins with an event of an id and empty data (2025-11-25, basic/transports, same section)."""
    disconnect_cancels: bool = False
    """Closing the connection cancels the request (2026-07-28); until then it SHOULD NOT be taken for that."""


HANDSHAKE = (
    Revision("2024-11-05"),
    Revision("2025-03-26", batches=True),
    Revision("2025-06-18"),
    Revision("2025-11-25", primes=True),
)
"""Those with `initialize`, oldest first."""

MODERN = Revision("2026-07-28", modern=True, disconnect_cancels=True)

NEWEST_HANDSHAKE = HANDSHAKE[-1]
ASSUMED = HANDSHAKE[1]
"""What a request without a version header is of (2025-11-25, basic/transports: "Protocol Version Header")."""

SERVED = (MODERN.date, *(revision.date for revision in reversed(HANDSHAKE)))
"""All, newest first, whatever the child behind speaks."""

REVISIONS = {revision.date: revision for revision in (*HANDSHAKE, MODERN)}


def negotiated(version: str | None) -> Revision:
    """The row for a version that a server answered with.

    Servers invent dates; the oldest rules are the ones that any client of such a server can follow.
    """
    row = REVISIONS.get(version or "", HANDSHAKE[0])
    return HANDSHAKE[0] if row.modern else row
