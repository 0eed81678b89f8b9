"""The questions of many servers to one client: two may have one id, or report on progress under one token."""

from collections.abc import Iterator
from itertools import count

from msgspec import Struct
from msgspec.structs import replace

from app.core.ledger import too_many_questions
from app.core.partner import ToServer
from app.core.probing import ToSession
from app.protocol import methods
from app.protocol.jsonrpc import Message, Notification, Reply, Request, RequestId, failure


class _Asked(Struct, frozen=True):
    server: str
    ident: RequestId
    token: RequestId | None


class Asking:
    """Each question gets a number of ours, which is its progress token, too."""

    def __init__(self, questions_max: int) -> None:
        self._questions_max = questions_max
        self._asked: dict[RequestId, _Asked] = {}
        self._numbers = count(1)

    def asked(self, server: str, question: Request, about: RequestId | None) -> ToSession | ToServer:
        if len(self._asked) >= self._questions_max:
            return ToServer(server, failure(question.id, too_many_questions()))
        number, token = next(self._numbers), methods.progress_token(question)
        self._asked[number] = _Asked(server, question.id, token)
        ours = Request(number, question.method, question.params)
        return ToSession(ours if token is None else methods.with_progress_token(ours, number), about)

    def answered(self, reply: Reply) -> tuple[str, Message] | None:
        """Whose question it answers, as that server knows it."""
        asked = self._asked.pop(reply.id, None) if reply.id is not None else None
        return None if asked is None else (asked.server, replace(reply, id=asked.ident))

    def reported(self, notification: Notification) -> tuple[str, Message] | None:
        """On whose question the client reports progress."""
        token = methods.reported_token(notification)
        asked = self._asked.get(token) if token is not None else None
        if asked is None or asked.token is None:
            return None
        return asked.server, methods.with_field(notification, "progressToken", asked.token)

    def withdrawn(self, server: str, notification: Notification) -> ToSession | None:
        """The server takes a question back."""
        theirs = methods.cancelled_id(notification)
        for number, asked in self._asked.items():
            if asked.server == server and asked.ident == theirs and type(asked.ident) is type(theirs):
                del self._asked[number]
                return ToSession(methods.with_field(notification, "requestId", number))
        return None

    def lapsed(self, server: str) -> Iterator[ToSession]:
        """The server is gone."""
        for number in [number for number, asked in self._asked.items() if asked.server == server]:
            del self._asked[number]
            yield ToSession(methods.cancellation(number, "the server that asked is gone"))
