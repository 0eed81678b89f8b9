"""Several servers as one, to one stateless request that is about all of them."""

import json
from collections.abc import Callable
from typing import Any, cast

from msgspec.structs import replace

from app.core import finding
from app.core.deadlines import Deadlines
from app.core.joint_rules import Known, Rules, everything
from app.gateway.joint import Joint
from app.gateway.joint_child import JointChild
from app.protocol import methods
from app.protocol.faults import BadParams, GatewayFault
from app.protocol.jsonrpc import Failure, Message, Notification, Request, Result, payload
from tests.core.joints import NAMES, compose, known, offered
from tests.gateway.children import past
from tests.support.http import on_loop

ALL = known({name: offered(name) for name in NAMES})
RULES = Rules("/mcp", "1", compose, patience=0.005)
SUBSCRIBE = Request(1, methods.SUBSCRIBE, payload({"uri": "a://one"}))
UPDATED = Notification(methods.RESOURCE_UPDATED, payload({"uri": "a://one"}))

Said = Callable[[Message | None], None]


class FakeJoint:
    """As a `Joint`, of which a test says what is known."""

    def __init__(self, known: Known = ALL, *, finds: bool = False) -> None:
        self.known = known
        self.uneven: dict[str, Deadlines] = {}
        self.rules = replace(RULES, finds=finds)
        self.watchers: dict[Callable[[], None], None] = {}
        self.find: Callable[..., None] = lambda _catalog, _query, _limit, _sees, then: then([])

    def watch(self, changed: Callable[[], None]) -> None:
        self.watchers[changed] = None

    def unwatch(self, changed: Callable[[], None]) -> None:
        self.watchers.pop(changed, None)

    def learns(self, known: Known) -> None:
        self.known = known
        for changed in list(self.watchers):
            changed()


class Asker:
    """As who asks."""

    def __init__(self, joint: FakeJoint, subscribe: Callable[[str, Said], Callable[[], None]] | None = None) -> None:
        self.heard: list[Message] = []
        self.faults: list[GatewayFault] = []
        self.ready_count = 0
        self.said: Said
        self.ended: list[str] = []
        # It has all of a joint that is used.
        self.child = JointChild(cast("Joint", joint), everything, subscribe or self._subscribe)
        self.child.join(self)

    def asks(self, method: str, params: dict[str, object] | None = None) -> None:
        self.child.submit(1, Request(1, method, None if params is None else payload(params)))

    @property
    def result(self) -> Any:
        [reply] = self.heard
        assert isinstance(reply, Result)
        return json.loads(bytes(reply.result))

    def _subscribe(self, uri: str, said: Said) -> Callable[[], None]:
        self.said = said
        return lambda: self.ended.append(uri)

    def ready(self) -> None:
        self.ready_count += 1

    def deliver(self, message: Message) -> None:
        self.heard.append(message)

    def lost(self, fault: GatewayFault) -> None:
        self.faults.append(fault)
        self.child.leave(1)


@on_loop
async def test_a_list_is_that_of_all_servers() -> None:
    asker = Asker(FakeJoint())
    asker.asks("tools/list")
    assert [tool["name"] for tool in asker.result["tools"]] == ["a__find", "b__find", "c__find"]


@on_loop
async def test_who_finds_tools_sees_two_of_them_and_what_was_found() -> None:
    joint = FakeJoint(finds=True)
    asked: list[tuple[str, int]] = []

    def find(catalog: Any, query: str, limit: int, _sees: object, then: Callable[[Any], None]) -> None:
        asked.append((query, limit))
        then([catalog.find("tools", "b__find")])

    joint.find = find
    asker = Asker(joint)
    asker.asks("tools/list")
    assert [tool["name"] for tool in asker.result["tools"]] == [finding.FIND, finding.CALL]
    asker.heard.clear()
    asker.asks("tools/call", {"name": finding.FIND, "arguments": {"query": "x", "limit": 2}})
    assert "b__find" in asker.result["content"][0]["text"]
    assert asked == [("x", 2)]


@on_loop
async def test_what_is_found_for_who_has_left_is_told_to_nobody() -> None:
    joint = FakeJoint(finds=True)
    late: list[Callable[[Any], None]] = []
    joint.find = lambda _catalog, _query, _limit, _sees, then: late.append(then)
    asker = Asker(joint)
    asker.asks("tools/call", {"name": finding.FIND, "arguments": {"query": "x"}})
    asker.child.leave(1)
    late[0]([])
    assert (asker.heard, joint.watchers) == ([], {})


@on_loop
async def test_what_cannot_be_answered_is_an_error() -> None:
    for method, code in (("x", -32601), ("tools/call", -32601)):
        asker = Asker(FakeJoint())
        asker.asks(method, {"name": "a__find"})
        [reply] = asker.heard
        assert isinstance(reply, Failure)
        assert methods.error_code(reply.error) == code


@on_loop
async def test_it_is_ready_when_all_is_known() -> None:
    joint = FakeJoint(known({"a": offered("a")}))
    asker = Asker(joint)
    joint.learns(known({"a": offered("a"), "b": offered("b")}))
    assert (asker.ready_count, asker.child.is_ready) == (0, False)
    joint.learns(ALL)
    assert (asker.ready_count, asker.child.is_ready, asker.heard) == (1, True, [])
    await past(RULES.patience)
    assert asker.ready_count == 1


@on_loop
async def test_it_is_ready_once_when_it_took_too_long_and_tells_then_what_changes() -> None:
    joint = FakeJoint(known({"a": offered("a")}))
    asker = Asker(joint)
    await past(RULES.patience)
    assert (asker.ready_count, asker.child.is_ready) == (1, True)
    joint.learns(ALL)
    assert asker.heard == [Notification(methods.RESOURCES_CHANGED), Notification(methods.TOOLS_CHANGED)]
    joint.learns(known({name: offered(name) for name in NAMES}))
    assert (len(asker.heard), asker.ready_count) == (2, 1)


@on_loop
async def test_who_finds_tools_is_not_told_that_they_changed() -> None:
    joint = FakeJoint(finds=True)
    asker = Asker(joint)
    joint.learns(known({name: offered(name, 1) for name in NAMES}))
    assert asker.heard == []


@on_loop
async def test_who_has_left_is_not_ready_later() -> None:
    joint = FakeJoint(known({"a": offered("a")}))
    asker = Asker(joint)
    asker.child.leave(1)
    await past(RULES.patience)
    joint.learns(ALL)
    assert (asker.ready_count, asker.heard, joint.watchers) == (0, [], {})


@on_loop
async def test_a_subscription_is_answered_and_what_is_said_of_it_is_told() -> None:
    asker = Asker(FakeJoint())
    asker.child.submit(1, SUBSCRIBE)
    assert asker.heard == []
    asker.said(Result(0, payload({})))
    asker.said(UPDATED)
    assert asker.heard == [Result(1, payload({})), UPDATED]
    asker.child.leave(1)
    asker.child.leave(1)
    assert asker.ended == ["a://one"]


@on_loop
async def test_a_subscription_that_its_server_does_not_take_is_refused() -> None:
    asker = Asker(FakeJoint())
    asker.child.submit(1, SUBSCRIBE)
    asker.said(Failure(0, payload({"code": 1, "message": "no"})))
    assert asker.heard == [Failure(1, payload({"code": 1, "message": "no"}))]


@on_loop
async def test_a_subscription_to_nothing_is_an_error() -> None:
    def nobodys(_uri: str, _said: Said) -> Callable[[], None]:
        raise BadParams("unknown resource")

    asker = Asker(FakeJoint(), nobodys)
    asker.child.submit(1, SUBSCRIBE)
    [refused] = asker.heard
    assert isinstance(refused, Failure)


@on_loop
async def test_a_subscription_that_its_server_ends_ends_all_and_the_others_are_let_go() -> None:
    asker = Asker(FakeJoint())
    asker.child.submit(1, SUBSCRIBE)
    asker.said(None)
    assert ([fault.reason for fault in asker.faults], asker.ended) == (["ended"], ["a://one"])


@on_loop
async def test_a_subscription_that_ends_before_it_began_is_let_go_all_the_same() -> None:
    ended: list[str] = []

    def ends_at_once(uri: str, said: Said) -> Callable[[], None]:
        said(None)
        return lambda: ended.append(uri)

    asker = Asker(FakeJoint(), ends_at_once)
    asker.child.submit(1, SUBSCRIBE)
    assert ([fault.reason for fault in asker.faults], ended) == (["ended"], ["a://one"])
