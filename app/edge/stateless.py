"""Streamable HTTP of the stateless era (2026-07-28, basic/transports/streamable-http)."""

import asyncio

from app.auth.term import How, Term
from app.core.admission import Admission
from app.core.effects import StreamId
from app.edge.asgi import Receive, Scope, Send, Way
from app.edge.incoming import StreamSettings
from app.edge.refusals import Refusal, status_of
from app.edge.responses import Response
from app.gateway.live_exchange import LiveExchange
from app.protocol import stateless
from app.protocol.faults import InvalidRequest
from app.protocol.jsonrpc import Message, Notification, Request
from app.protocol.stateless import Admitted


def admitted(message: Message | list[Message], admission: Admission, *, takes_stream: bool) -> Admitted | None:
    """The request as it is to be served; none where the message is a notification, for none of this era means anything.

    Raises:
        ClientFault: its body lacks what every request carries, or its headers do not say the same.
        Refusal: it can only be answered in events, and they are not accepted.
    """
    match message:
        case Request():
            request = admission.admit(message)
            if request.method == stateless.LISTEN and not takes_stream:
                raise Refusal(406, "not_acceptable", "a subscription is answered with text/event-stream; accept that")
            return request
        case Notification():
            return None
        case list():
            raise InvalidRequest("this revision has no batches; send one message in each POST")
        case _:
            raise InvalidRequest("clients of this revision send no responses; retry the request with inputResponses")


class InExchange:
    """A stateless request that waits for its answer; `json` and `events` are the headers of one in either form."""

    __slots__ = ("_cut", "_events", "_json", "_live", "_settings", "_stream", "_term", "response")

    def __init__(
        self,
        settings: StreamSettings,
        json: tuple[tuple[bytes, bytes], ...],
        events: tuple[tuple[bytes, bytes], ...],
        live: LiveExchange,
        stream: StreamId,
        response: Response,
        term: Term,
    ) -> None:
        self.response = response
        self._term = term
        self._settings = settings
        self._json = json
        self._events = events
        self._live = live
        self._stream = stream
        self._cut: asyncio.TimerHandle | None = None
        """What ends it some time after its token."""

    async def ready(self, receive: Receive) -> None:
        self._term.watch(self._over)
        is_known = False
        try:
            await self.response.ready_or_gone(receive)
            is_known = True
        finally:
            if not is_known:
                self._unwatch()

    def watch(self, way: Way) -> None:
        """What ends before its answer is known is written as a stream, and that cancels."""
        way.watch(self.response.end)
        self._term.watch(self._over)

    def head(self) -> tuple[int, tuple[tuple[bytes, bytes], ...]]:
        """An answer that comes first sets the status, whoever gave it. What becomes of the token no longer matters."""
        self._unwatch()
        answered = self._live.answered
        return 200 if answered is None else status_of(answered), self._json

    async def stream(self, _scope: Scope, receive: Receive, send: Send) -> None:
        """Until the answer; closing it before cancels the request."""
        headers, keep_alive = [*self._events], self._settings.keep_alive
        try:
            await self.response.write(receive, send, headers, keep_alive=keep_alive, close_after=None)
        finally:
            self._unwatch()
            self._live.detach(self._stream)

    def _over(self, how: How) -> None:
        """A subscription gets its result; a call may go on for a while, unless the token was revoked."""
        if self._live.asked.request.method == stateless.LISTEN:
            self._live.close()
        elif how == "revoked":
            self.response.end()
        else:
            self._cut = asyncio.get_running_loop().call_later(self._settings.expired_seconds, self.response.end)

    def _unwatch(self) -> None:
        self._term.unwatch(self._over)
        if self._cut is not None:
            self._cut.cancel()
