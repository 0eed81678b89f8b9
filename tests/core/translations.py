"""What the tests of a translation begin with: the session's ids are below 100, ours begin there."""

from itertools import count
from typing import Any, Literal

from msgspec import Raw, json

from app.core.parties import ToChild
from app.core.patience import Patience
from app.core.probing import Outcome, ToSession
from app.core.translation import Translation
from app.protocol import stateless
from app.protocol.jsonrpc import Failure, Message, Notification, Request, RequestId, Result, payload
from app.protocol.stateless import Envelope

CAPABILITIES: dict[str, Any] = {"elicitation": {"form": {}, "url": {}}, "sampling": {}, "roots": {"listChanged": True}}
CLIENT = {"name": "desk", "version": "3"}
INITIALIZE = Request(
    1, "initialize", payload({"protocolVersion": "2025-06-18", "capabilities": CAPABILITIES, "clientInfo": CLIENT})
)
SERVER = {"name": "weather", "version": "9"}
OFFERED: dict[str, Any] = {
    "tools": {"listChanged": True},
    "prompts": {},
    "resources": {"subscribe": True, "listChanged": True},
    "logging": {},
}
DISCOVERED: dict[str, Any] = {
    "resultType": "complete",
    "supportedVersions": ["2026-07-28"],
    "capabilities": OFFERED,
    "_meta": {"io.modelcontextprotocol/serverInfo": SERVER},
    "ttlMs": 1,
    "cacheScope": "public",
}
REFUSED = payload({"code": -32601, "message": "no such method", "data": [1, 2.50]})
PATIENCE = Patience(discover=5, retry_first=0.1, retry_most=2, listen_first=0.5, listen_most=60)


def raw(text: str) -> Raw:
    return Raw(text.encode())


def read(value: Raw | None) -> Any:
    return {} if value is None else json.decode(value)


def new(begins: Literal["legacy", "modern"] = "legacy", *, falls_back: bool = True) -> Translation:
    names = count(1)
    return Translation(
        count(100),
        "0.1",
        begins=begins,
        falls_back=falls_back,
        elicitation_id=lambda: f"e{next(names)}",
        patience=PATIENCE,
    )


def modern(offered: dict[str, Any] | None = None, initialize: Request = INITIALIZE) -> Translation:
    """A child that answered `server/discover`, our request 100, and an open session."""
    translation = new("modern")
    translation.submit(initialize, 0)
    translation.receive(Result(100, payload({**DISCOVERED, "capabilities": offered or OFFERED})), 0)
    return translation


def listening(offered: dict[str, Any] | None = None) -> Translation:
    """The same with the first stream acknowledged, our request 101."""
    translation = modern(offered)
    told = translation.submit(Notification("notifications/initialized"), 0)
    translation.receive(acknowledged(101, asked(told)), 0)
    return translation


def carried(level: str = "") -> Envelope:
    said = {name: payload(value) for name, value in CAPABILITIES.items()}
    return Envelope("2026-07-28", said, payload(CLIENT), level)


def enveloped(ident: RequestId, method: str, params: object = None, level: str = "") -> ToChild:
    said = None if params is None else payload(params)
    return ToChild(Request(ident, method, stateless.with_envelope(said, carried(level))))


def listen(ident: int, *uris: str, tools: bool = True, resources: bool = True) -> ToChild:
    wanted: dict[str, object] = {}
    if tools:
        wanted["toolsListChanged"] = True
    if resources:
        wanted["resourcesListChanged"] = True
    if uris:
        wanted["resourceSubscriptions"] = list(uris)
    return enveloped(ident, "subscriptions/listen", {"notifications": wanted})


def asked(outcomes: list[Outcome]) -> dict[str, Any]:
    """The filter of the `subscriptions/listen` among the outcomes."""
    (listened,) = [told.message for told in outcomes if isinstance(told, ToChild) and isinstance(told.message, Request)]
    assert listened.method == "subscriptions/listen"
    wanted: dict[str, Any] = read(listened.params)["notifications"]
    return wanted


def tagged(method: str, ident: RequestId, params: dict[str, object] | None = None) -> Notification:
    meta = {"_meta": {"io.modelcontextprotocol/subscriptionId": ident}}
    return Notification(method, payload({**(params or {}), **meta}))


def acknowledged(ident: RequestId, agreed: dict[str, Any]) -> Notification:
    return tagged("notifications/subscriptions/acknowledged", ident, {"notifications": agreed})


def cancelled(ident: RequestId, reason: str) -> Notification:
    return Notification("notifications/cancelled", payload({"requestId": ident, "reason": reason}))


def unlistened(ident: int) -> ToChild:
    return ToChild(cancelled(ident, "the subscription is no longer needed"))


def withdrawn(ident: int, about: int) -> ToSession:
    return ToSession(cancelled(ident, "the call that needed the answer is over"), about)


def call(ident: int, **params: object) -> Request:
    return Request(ident, "tools/call", payload({"name": "t", **params}))


def asking(ident: RequestId, questions: dict[str, Any], state: str | None = None) -> Result:
    said: dict[str, object] = {"resultType": "input_required"}
    if questions:
        said["inputRequests"] = questions
    if state is not None:
        said["requestState"] = state
    return Result(ident, payload(said))


def retry(ident: int, answers: dict[str, object], state: str | None = None, **params: object) -> ToChild:
    """What the child is sent when the answers to its questions are in."""
    more: dict[str, object] = {}
    if answers:
        more["inputResponses"] = answers
    if state is not None:
        more["requestState"] = state
    message = enveloped(ident, "tools/call", {"name": "t", **params}).message
    assert isinstance(message, Request)
    said = json.decode(message.params or b"{}", type=dict[str, Raw])
    return ToChild(Request(ident, "tools/call", payload({**said, **more})))


def code(outcomes: list[Outcome]) -> tuple[RequestId | None, int]:
    """Of the only outcome, a failure for the session: whom it answers, and its code."""
    (outcome,) = outcomes
    assert isinstance(outcome, ToSession)
    return failed(outcome.message)


def failed(message: Message) -> tuple[RequestId | None, int]:
    assert isinstance(message, Failure)
    return message.id, read(message.error)["code"]
