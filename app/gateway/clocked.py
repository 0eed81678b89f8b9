"""The calls of a session on their way to being counted: what each is, and since when its client waits."""

from collections.abc import Sequence
from time import monotonic

from app.core.effects import StreamId
from app.core.judged import Docket, docket_of
from app.protocol import methods
from app.protocol.jsonrpc import Message, Reply, Request, RequestId
from app.telemetry.tally import CANCELLED, Calls

_Begun = tuple[str, float, Docket | None]


class Clocked:
    """A POST has one call or, as a batch, many; the one stream of HTTP+SSE has all. Of several calls with one id on
    one stream, the newest is taken for the one that is over."""

    __slots__ = ("_alone", "_many", "_tally")

    def __init__(self, tally: Calls) -> None:
        self._tally = tally
        self._alone: dict[StreamId, _Begun] = {}
        self._many: dict[tuple[StreamId, RequestId], list[_Begun]] = {}

    def __len__(self) -> int:
        return len(self._alone) + sum(map(len, self._many.values()))

    def begin(self, stream: StreamId, request: Request) -> None:
        """The only call on its stream."""
        self._alone[stream] = _begun(request)

    def begin_any(self, stream: StreamId, asked: Request | Sequence[Message]) -> None:
        """Those of one POST."""
        if isinstance(asked, Request):
            self.begin(stream, asked)
        else:
            self.begin_all(stream, asked)

    def begin_all(self, stream: StreamId, messages: Sequence[Message]) -> None:
        """Calls on a stream that may have others."""
        for message in messages:
            if isinstance(message, Request):
                self._many.setdefault((stream, message.id), []).append(_begun(message))

    def answered(self, stream: StreamId, reply: Reply) -> None:
        begun = self._alone.pop(stream, None)
        if begun is None:
            begun = self._newest(stream, reply.id)
        if begun is not None:
            method, since, docket = begun
            self._tally.add(method, reply, monotonic() - since)
            if docket is not None:
                docket.over(reply)

    def cancelled(self, stream: StreamId, ident: RequestId) -> None:
        """Its client took it back, and will be told nothing of it any more; `initialize` cannot be taken back."""
        begun = self._newest(stream, ident)
        if begun is None:
            return
        method, since, docket = begun
        if method == methods.INITIALIZE:
            self._many.setdefault((stream, ident), []).append(begun)
        else:
            self._tally.end(method, CANCELLED, monotonic() - since)
            if docket is not None:
                docket.over(None)

    def close(self) -> None:
        """Nobody will be told anything any more."""
        left = [*self._alone.values(), *(begun for many in self._many.values() for begun in many)]
        self._alone, self._many = {}, {}
        for _method, _since, docket in left:
            if docket is not None:
                docket.over(None)

    def _newest(self, stream: StreamId, ident: RequestId | None) -> _Begun | None:
        if ident is None:
            return None
        calls = self._many.pop((stream, ident), [])
        newest = calls.pop() if calls else None
        if calls:
            self._many[stream, ident] = calls
        return newest


def _begun(request: Request) -> _Begun:
    return request.method, monotonic(), docket_of(request)
