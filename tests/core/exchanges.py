"""What the tests of stateless requests begin with: the client's ids and streams are small, ours begin at 100."""

from collections.abc import Mapping
from itertools import count
from typing import Any

from msgspec import Raw, json

from app.core.deadlines import Deadlines
from app.core.effects import Effect, Ended, EndStream, ToClient, ToUpstream
from app.core.exchange import Exchange
from app.core.interview import Interview
from app.protocol import stateless
from app.protocol.jsonrpc import Failure, Message, Notification, Request, RequestId, Result, payload

LIMITS = Deadlines(request=60, max_request=600, stream_after=0.25, park=300, ask_after=0.02, ask_within=0.2)
EVERYTHING: dict[str, Any] = {"elicitation": {"form": {}, "url": {}}, "sampling": {"tools": {}}, "roots": {}}
VERSION = "io.modelcontextprotocol/protocolVersion"
CAPABILITIES = "io.modelcontextprotocol/clientCapabilities"
LOG_LEVEL = "io.modelcontextprotocol/logLevel"
SUBSCRIPTION = "io.modelcontextprotocol/subscriptionId"


def raw(text: str) -> Raw:
    return Raw(text.encode())


def read(value: Raw | None) -> Any:
    return {} if value is None else json.decode(value)


def never(_ident: int) -> bool:
    return False


def always(_ident: int) -> bool:
    return True


def request(
    ident: RequestId = 1,
    method: str = "tools/call",
    params: dict[str, object] | None = None,
    *,
    capabilities: dict[str, object] = EVERYTHING,
    level: str = "",
    token: RequestId | None = None,
) -> Request:
    """As a stateless client sends it."""
    meta: dict[str, object] = {VERSION: "2026-07-28", CAPABILITIES: capabilities}
    if level:
        meta[LOG_LEVEL] = level
    if token is not None:
        meta["progressToken"] = token
    return Request(ident, method, payload({**(params or {"name": "t"}), "_meta": meta}))


def retry(ident: RequestId, answers: dict[str, object], **said: Any) -> Request:
    params: dict[str, object] = {"name": "t", "inputResponses": answers, "requestState": "sealed-1"}
    return request(ident, params=params, **said)


def call_at_child(ident: int = 100, token: int | None = None, method: str = "tools/call") -> ToUpstream:
    """What a handshake child gets of `request`."""
    params: dict[str, object] = {"name": "t"}
    if token is not None:
        params["_meta"] = {"progressToken": token}
    return ToUpstream(Request(ident, method, payload(params)))


def interview(asked: Request, hints: Mapping[str, object] | None = None) -> Interview:
    return Interview(
        asked,
        stateless.envelope(asked),
        LIMITS,
        count(100),
        seal=lambda round_: f"sealed-{round_}",
        describe=lambda: raw('{"name":"w","version":"9"}'),
        hints=hints,
        server="weather",
    )


def begun(asked: Request | None = None, *, can_stream: bool = True) -> Interview:
    """A call that the child has as our request 100, or 101 where it wants log messages."""
    core = interview(asked or request())
    core.begin(1, 0.0, can_stream=can_stream)
    return core


def form(ident: RequestId, *fields: str) -> Request:
    schema = {"type": "object", "properties": {name: {"type": "string"} for name in fields}}
    return Request(ident, "elicitation/create", payload({"message": "?", "requestedSchema": schema}))


def url(ident: RequestId) -> Request:
    said = {"mode": "url", "message": "Go", "url": "https://x", "elicitationId": "e1"}
    return Request(ident, "elicitation/create", payload(said))


def sample(ident: RequestId, **more: object) -> Request:
    return Request(ident, "sampling/createMessage", payload({"maxTokens": 5, **more}))


def roots(ident: RequestId) -> Request:
    return Request(ident, "roots/list")


def shown(question: Request) -> dict[str, object]:
    """The question in a result that asks."""
    said: dict[str, object] = {"method": question.method}
    return said if question.params is None else {**said, "params": read(question.params)}


def parked(core: Interview, *questions: Request, now: float = 1.0) -> Interview:
    """The call waits for the answers to these."""
    for question in questions:
        assert core.deliver(question, now) == []
    core.tick(now + LIMITS.ask_after, never)
    assert core.is_parked
    return core


def asking(effects: list[Effect], stream: int, ident: RequestId) -> dict[str, Any]:
    """What the only answer on the stream asks."""
    result = answered(effects, stream)
    assert isinstance(result, Result)
    assert (result.id, type(result.id)) == (ident, type(ident))
    body = read(result.result)
    assert body.pop("resultType") == "input_required"
    assert isinstance(body, dict)
    return body


def answered(effects: list[Effect], stream: int) -> Message:
    """The last word on the stream, and the stream's end right after it."""
    (said,) = [effect for effect in effects if isinstance(effect, ToClient)]
    assert said.stream == stream
    place = effects.index(said)
    assert effects[place + 1] == EndStream(stream)
    return said.message


def done(stream: int, message: Message) -> list[Effect]:
    """The stream's last word, and with it the end of all."""
    return [ToClient(stream, message), EndStream(stream), Ended("answered")]


def completed(ident: RequestId, **said: object) -> Result:
    """A handshake child's result as its stateless client gets it."""
    info = {"io.modelcontextprotocol/serverInfo": {"name": "w", "version": "9"}}
    return Result(ident, payload({"resultType": "complete", **said, "_meta": info}))


def refused(effects: list[Effect], stream: int) -> tuple[RequestId | None, int, str, str]:
    """Of the last word, a fault of ours: whom it answers, its code, its reason and whether it was executed."""
    message = answered(effects, stream)
    assert isinstance(message, Failure)
    error = read(message.error)
    assert error["data"]["source"] == "gateway"
    assert error["data"]["server"] == "weather"
    return message.id, error["code"], error["data"]["reason"], error["data"]["executed"]


def unanswered(effects: list[Effect]) -> list[tuple[RequestId | None, int, str]]:
    """The questions that the child is told will not be answered: id, code and reason."""
    told = [effect.message for effect in effects if isinstance(effect, ToUpstream)]
    failed = [message for message in told if isinstance(message, Failure)]
    errors = [(message.id, read(message.error)) for message in failed]
    return [(ident, error["code"], error["data"]["reason"]) for ident, error in errors]


def cancelled(ident: RequestId, reason: str) -> ToUpstream:
    return ToUpstream(Notification("notifications/cancelled", payload({"requestId": ident, "reason": reason})))


def withdrawal(ident: RequestId) -> Notification:
    return Notification("notifications/cancelled", payload({"requestId": ident}))


def progress(token: RequestId, value: float = 1) -> Notification:
    return Notification("notifications/progress", payload({"progressToken": token, "progress": value}))


def logged(level: str) -> Notification:
    return Notification("notifications/message", payload({"level": level, "data": 1}))


def is_at_rest(core: Exchange) -> bool:
    return core.is_over and core.due == float("inf")
