"""One look at what a server offers, through a child that is none."""

import asyncio
import json

import pytest

from app.core.inventory import Inventory
from app.gateway.settings import CatalogSettings, UpstreamSettings
from app.gateway.survey import Survey
from app.protocol import methods, stateless
from app.protocol.faults import Exited, GatewayFault, Overloaded
from app.protocol.jsonrpc import Failure, Message, Notification, Request, Result, failure, payload
from app.protocol.revisions import MODERN
from tests.core.inventories import item, offers, raw
from tests.gateway.children import FakeChild, Starting, past, upstream
from tests.support.http import on_loop

OFFERED = offers(tools=["find"], prompts=["review"])


class Told:
    """What comes of a survey."""

    def __init__(self, child: FakeChild | GatewayFault, server: UpstreamSettings | None = None, patience: float = 30):
        self.inventories: list[Inventory] = []
        self.faults: list[GatewayFault] = []
        self.came = asyncio.Event()
        self.known: Inventory | None = None
        settings = CatalogSettings(patience_seconds=patience)
        self.survey = Survey(server or upstream(), settings, self._done, self._failed)
        self.survey.begin(Starting(child))

    def _done(self, inventory: Inventory) -> None:
        self.inventories.append(inventory)
        self.came.set()

    def _failed(self, fault: GatewayFault, known: Inventory | None) -> None:
        self.known = known
        self.faults.append(fault)
        self.came.set()

    @property
    def reasons(self) -> list[str]:
        assert len(self.inventories) + len(self.faults) <= 1
        return [fault.reason for fault in self.faults]


@on_loop
async def test_all_its_lists_are_read_and_its_child_is_stopped() -> None:
    child = FakeChild()
    told = Told(child)
    assert child.asked() == ["tools/list", "prompts/list"]
    child.lists(tools="find", prompts="review")
    [inventory] = told.inventories
    assert (inventory.tools, inventory.prompts, inventory.instructions) == (OFFERED.tools, OFFERED.prompts, "Ask.")
    assert (child.is_closed, child.member) == (True, None)
    child.lists(tools="other")
    assert told.reasons == []


@on_loop
async def test_a_child_that_all_share_goes_on() -> None:
    child = FakeChild()
    told = Told(child, upstream(isolation="shared"))
    child.lists(tools="find")
    assert len(told.inventories) == 1
    assert (child.is_closed, child.member) == (False, None)


@on_loop
async def test_nothing_is_asked_before_the_child_is_ready() -> None:
    child = FakeChild(is_ready=False)
    told = Told(child)
    assert child.sent == []
    child.starts()
    child.lists(tools="find")
    assert [inventory.tools for inventory in told.inventories] == [(item("tools", "find"),)]


@on_loop
async def test_a_stateless_server_is_asked_statelessly() -> None:
    child = FakeChild(raw({"capabilities": {"tools": {}}}), is_modern=True)
    told = Told(child)
    [request] = child.sent
    assert isinstance(request, Request)
    assert request.params is not None
    meta = json.loads(bytes(request.params))["_meta"]
    assert meta[stateless.VERSION_KEY] == MODERN.date
    child.lists(tools="find")
    assert [inventory.tools for inventory in told.inventories] == [(item("tools", "find"),)]


@on_loop
async def test_who_has_no_lists_is_known_at_once() -> None:
    told = Told(FakeChild(raw({"capabilities": {"logging": {}}})))
    assert told.inventories == [Inventory({"logging": payload({})})]


@pytest.mark.parametrize(
    ("method", "answer"),
    [
        ("ping", Result(9, payload({}))),
        ("roots/list", Result(9, payload({"roots": []}))),
        ("sampling/createMessage", "client_unreachable"),
        ("elicitation/create", "client_unreachable"),
        ("x", "unknown_method"),
    ],
)
def test_what_the_child_asks_is_answered_though_nobody_is_there(method: str, answer: Message | str) -> None:
    @on_loop
    async def answered() -> None:
        for early in (True, False):
            child = FakeChild()
            if early:
                child.held.append(Request(9, method))
            told = Told(child)
            if not early:
                child.says(Request(9, method))
            [reply] = [message for message in child.sent if isinstance(message, Result | Failure)]
            if isinstance(answer, str):
                assert isinstance(reply, Failure)
                assert (reply.id, json.loads(bytes(reply.error))["data"]["reason"]) == (9, answer)
            else:
                assert reply == answer
            child.lists(tools="find")
            assert len(told.inventories) == 1

    answered()


@on_loop
async def test_the_questions_of_a_child_that_all_share_are_nobodys() -> None:
    child = FakeChild()
    child.held.append(Request(9, "roots/list"))
    Told(child, upstream(isolation="shared"))
    assert child.asked() == ["tools/list", "prompts/list"]
    assert len(child.sent) == 2


@on_loop
async def test_a_child_that_does_not_list_in_time_is_given_up_and_stopped() -> None:
    child = FakeChild()
    told = Told(child, patience=0.01)
    await told.came.wait()
    assert told.reasons == ["timed_out"]
    assert (child.is_closed, child.member) == (True, None)


@on_loop
async def test_who_lists_in_time_is_not_given_up_later() -> None:
    child = FakeChild()
    told = Told(child, patience=0.01)
    child.lists()
    await past(0.01)
    assert told.reasons == []


@on_loop
async def test_why_there_is_no_child_is_told() -> None:
    assert Told(Overloaded("full", reason="children")).reasons == ["children"]


@on_loop
async def test_why_the_child_is_gone_is_told_once() -> None:
    child = FakeChild()
    told = Told(child, patience=0.01)
    child.is_lost(Exited("gone"))
    child.lists(tools="find")
    await past(0.01)
    assert told.reasons == ["exited"]


@on_loop
async def test_a_child_that_does_not_survive_our_answer_is_asked_nothing_and_told_once() -> None:
    """One with no lists would be known as well as gone."""
    child = FakeChild(raw({"capabilities": {}}))
    child.held.append(Request(9, "ping"))
    child.on_submit = lambda _answer: child.is_lost(Exited("gone"))
    told = Told(child)
    assert told.reasons == ["exited"]
    assert child.asked() == []


@on_loop
async def test_what_is_refused_at_once_ends_the_list_and_not_the_survey() -> None:
    """As by a queue that is full."""
    child = FakeChild()

    def refused(message: Message) -> None:
        if isinstance(message, Request):
            child.says(failure(message.id, Overloaded("full")))

    child.on_submit = refused
    told = Told(child)
    assert child.asked() == ["tools/list", "prompts/list"]
    assert [(inventory.tools, inventory.instructions) for inventory in told.inventories] == [((), "Ask.")]


@on_loop
async def test_a_survey_that_nobody_wants_any_more_tells_nobody() -> None:
    child = FakeChild()
    told = Told(child, patience=0.01)
    told.survey.close()
    told.survey.close()
    child.lists(tools="find")
    await past(0.01)
    assert (told.inventories, told.faults) == ([], [])
    assert (child.is_closed, child.member) == (True, None)


@on_loop
async def test_what_it_says_besides_is_nothing() -> None:
    child = FakeChild()
    told = Told(child)
    for method in (methods.LOG_MESSAGE, methods.TOOLS_CHANGED, methods.PROGRESS):
        child.says(Notification(method))
    for ident in (None, 1000, "1"):
        child.says(Failure(ident, payload({})))
    assert told.inventories == []
    child.lists()
    assert len(told.inventories) == 1
