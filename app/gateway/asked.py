"""A stateless request as it was admitted, and what may serve it."""

from collections.abc import Callable, Iterator
from typing import Protocol

from msgspec import Raw, Struct

from app.core.catalog import Sight
from app.core.joint_rules import everything
from app.core.parties import Party
from app.gateway.common import Member
from app.gateway.settings import UpstreamSettings
from app.protocol.faults import BadParams
from app.protocol.jsonrpc import Message
from app.protocol.stateless import Admitted, Envelope


class Asked(Struct, frozen=True):
    """A stateless request as it was admitted. `has_foreign_state`: it carries a state, and not one that we sealed."""

    owner: str
    upstream: UpstreamSettings
    request: Admitted
    headers: dict[bytes, bytes]
    has_foreign_state: bool = False
    sees: Sight = everything
    """What of several servers' lists its client may see."""
    outward: Callable[[Raw], Raw] | None = None
    """How its server's result is to be read by who asked several."""
    is_mirrored: bool = True
    """Whether its headers repeat its arguments, where its tool wants that."""

    @property
    def carried(self) -> Envelope:
        return self.request.meta.carried


class Host(Protocol):
    """Who serves the request: a child, or what stands for several."""

    mint: Iterator[int]

    @property
    def is_ready(self) -> bool: ...

    @property
    def is_modern(self) -> bool: ...

    @property
    def greeted(self) -> Raw | None: ...

    def server_info(self) -> Raw | None: ...

    def join(self, member: Member, /) -> Party: ...

    def submit(self, party: Party, message: Message, /) -> None: ...

    def hold(self, party: Party, /) -> list[Message]: ...

    def withdraw(self, ident: int, /) -> bool: ...

    def doubt(self) -> None: ...

    def leave(self, party: Party, /) -> None: ...


def state_unknown(server: str) -> BadParams:
    """One and the same for a state that was changed, is somebody else's or another request's, was used or expired."""
    sentence = "requestState is not valid for this request; send it again without one"
    return BadParams(sentence, reason="state_unknown", details={"server": server})
