"""What a session knows of its server: the seat that it has there, or nowhere any more."""

from typing import Protocol

from app.core.joint_names import JointNames
from app.protocol.jsonrpc import Message


class Seat(Protocol):
    """What a session knows of its server."""

    @property
    def names(self) -> JointNames | None:
        """Where it has several servers: what their public names mean."""

    @property
    def waiting_bytes(self) -> int:
        """Of what it keeps until the server can take it."""

    def submit(self, message: Message) -> None:
        """Hand the server a message, or keep it until the server can take it."""

    def withdraw(self, ident: int, /) -> bool:
        """Take back a request of which not one byte was sent; False where that is too late."""

    def doubt(self) -> None:
        """A call was not answered in time."""

    def wake(self) -> None:
        """Somebody wants to hear of the server: from now on there has to be one."""

    def leave(self) -> None:
        """The session has ended."""


class _Nowhere:
    """The place of a session that has ended: if it knew its child still, only the garbage collector could end both."""

    names = None
    waiting_bytes = 0

    def submit(self, message: Message) -> None: ...

    def withdraw(self, _ident: int, /) -> bool:
        return False

    def doubt(self) -> None: ...

    def wake(self) -> None: ...

    def leave(self) -> None: ...


NOWHERE = _Nowhere()
