"""What servers offer, as far as somebody waits to know it."""

from collections.abc import Callable

from app.gateway.cataloguer import Cataloguer
from app.gateway.common import CommonChild
from app.gateway.settings import CatalogSettings, UpstreamSettings
from app.protocol.faults import Unavailable
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
