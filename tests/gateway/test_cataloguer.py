"""What servers offer, as far as somebody waits to know it."""

from collections.abc import Callable
from itertools import count
from typing import cast

from msgspec import Raw

from app.gateway.cataloguer import Cataloguer
from app.gateway.common import CommonChild
from app.gateway.settings import CatalogSettings, UpstreamSettings
from app.gateway.survey import Survey
from app.protocol.faults import Unavailable
from app.protocol.jsonrpc import Message, Request, Result, payload
from app.upstreams.command import Command
from tests.support.http import on_loop


class Refusing:
    """There is no child to be had."""

    def __init__(self) -> None:
        self.asked: list[str] = []

    def __call__(self, upstream: UpstreamSettings, _on_lost: Callable[[], object]) -> CommonChild:
        self.asked.append(upstream.name)
        raise Unavailable("it does not start", reason="command_not_found")


def cataloguer(start: Refusing) -> Cataloguer:
    servers = {name: UpstreamSettings(name, Command(("none",))) for name in ("a", "b")}
    return Cataloguer(CatalogSettings(retry_seconds=60), servers.get, start)


@on_loop
async def test_what_cannot_be_known_is_settled_with_a_reason() -> None:
    start = Refusing()
    known = cataloguer(start)
    await known.settle(["a", "b"])
    assert known.absences == {"a": "command_not_found", "b": "command_not_found"}
    assert start.asked == ["a", "b"]
    known.close()


@on_loop
async def test_nobody_waits_on_where_nobody_wants_to_know_any_more() -> None:
    known = cataloguer(Refusing())
    known.close()
    await known.settle(["a"])


class Listed:
    """As a child that has these tools by now; asked for them, it says so, and then `meanwhile` happens."""

    is_ready, is_modern = True, False
    greeted = Raw(b'{"capabilities":{"tools":{}}}')

    def __init__(self, meanwhile: Callable[[], object]) -> None:
        self.tools = ["old"]
        self.mint = count(1)
        self._meanwhile = meanwhile

    def join(self, survey: Survey) -> int:
        self._survey = survey
        return 1

    def submit(self, _party: int, request: Message) -> None:
        assert isinstance(request, Request)
        page = payload({"tools": [{"name": name} for name in self.tools]})
        self._meanwhile()
        self._survey.deliver(Result(request.id, page))

    def leave(self, _party: int) -> None:
        """It goes on, as one that is shared."""


@on_loop
async def test_a_change_while_lists_are_read_is_read_afterwards() -> None:
    def change() -> None:
        child.tools = ["old", "new"]
        if "a" not in known.inventories:
            known.announced("a")

    child = Listed(change)
    as_one = cast("CommonChild", child)  # It has what a survey wants of one.
    shared = UpstreamSettings("a", Command(("none",)), isolation="shared")
    known = Cataloguer(CatalogSettings(fresh_seconds=0.01), {"a": shared}.get, lambda _upstream, _lost: as_one)
    await known.settle(["a"])
    await known.until(lambda: [tool.name for tool in known.inventories["a"].tools] == ["old", "new"])
    known.close()
