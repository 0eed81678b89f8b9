"""What a gateway that is gone still owed."""

from app.core.effects import StreamId
from app.core.replay import Event, Lost
from app.protocol.faults import Exited
from app.protocol.jsonrpc import Failure, RequestId, failure
from app.stores.port import Saved


def left_over(saved: Saved, server: str) -> list[tuple[StreamId, Failure]]:
    """The last word for each call that has none: whoever resumes its stream is waiting for it."""
    answered: dict[StreamId, list[RequestId]] = {}
    for fact in saved.history:
        if isinstance(fact, Event | Lost) and fact.answers is not None:
            answered.setdefault(fact.stream, []).append(fact.answers)
    return [
        (way.stream, failure(ident, _interrupted(server)))
        for way in saved.ways
        for ident in way.owed or ()
        if ident not in answered.get(way.stream, ())
    ]


def _interrupted(server: str) -> Exited:
    sentence = "the gateway ended while the server was working on it"
    return Exited(sentence, reason="gateway_restarted", executed="unknown", details={"server": server})
