"""What the tests of one `subscriptions/listen` have in common: what is asked for, and what is said of it."""

from app.core.effects import Effect, ToClient
from app.protocol.jsonrpc import Notification, Request, RequestId, Result, payload
from tests.core.exchanges import SUBSCRIPTION, done, request

ALL = {"toolsListChanged": True, "promptsListChanged": True, "resourcesListChanged": True}
OFFERED = {"tools": {"listChanged": True}, "prompts": {"listChanged": True}, "resources": {"listChanged": True}}
WATCHED = {"resources": {"subscribe": True}}
TOOLS = "notifications/tools/list_changed"
PROMPTS = "notifications/prompts/list_changed"
RESOURCES = "notifications/resources/list_changed"
UPDATED = "notifications/resources/updated"
ACKNOWLEDGED = "notifications/subscriptions/acknowledged"


def listen(wanted: object = ALL, ident: RequestId = "L") -> Request:
    return request(ident, "subscriptions/listen", {"notifications": wanted})


def tagged(method: str, ident: RequestId = "L", **params: object) -> Notification:
    return Notification(method, payload({**params, "_meta": {SUBSCRIPTION: ident}}))


def heard(*said: Notification) -> list[Effect]:
    return [ToClient(1, notification) for notification in said]


def acknowledged(agreed: object, ident: RequestId = "L") -> Notification:
    return tagged(ACKNOWLEDGED, ident, notifications=agreed)


def ended(ident: RequestId = "L") -> list[Effect]:
    """We say that it is over, and then it is."""
    reason = {"requestId": ident, "reason": "the server ended the subscription"}
    body = {"resultType": "complete", "_meta": {SUBSCRIPTION: ident}}
    return [*heard(tagged("notifications/cancelled", ident, **reason)), *done(1, Result(ident, payload(body)))]


def updated(uri: str) -> Notification:
    return Notification(UPDATED, payload({"uri": uri}))
