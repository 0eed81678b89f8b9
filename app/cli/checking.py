"""Starting each server once, asking what it offers, and stopping it: what `viaduct check` does."""

import asyncio
import json
import time
from dataclasses import asdict, dataclass, field

import click
from msgspec import Raw
from msgspec.json import Decoder

from app.asgi import gateway_settings
from app.config import Config
from app.gateway.settings import UpstreamSettings
from app.protocol.faults import ClientFault, GatewayFault, Unavailable, UnknownMethod
from app.protocol.jsonrpc import (
    Failure,
    Message,
    Notification,
    Request,
    Result,
    failure,
    line,
    payload,
    read_all,
    result,
)
from app.protocol.methods import PING, error_code
from app.protocol.revisions import NEWEST_HANDSHAKE
from app.upstreams.child import Child, Exit, start

AT_ONCE = 4
PAGES_MAX = 100

_LISTS = (
    ("tools", "tools/list", "tools"),
    ("resources", "resources/list", "resources"),
    ("templates", "resources/templates/list", "resources"),
    ("prompts", "prompts/list", "prompts"),
)
_objects: Decoder[dict[str, object]] = Decoder(dict[str, object])


@dataclass(slots=True)
class Report:
    """What one server had to say."""

    server: str
    ok: bool = False
    seconds: float = 0.0
    version: str = ""
    info: object = None
    offers: dict[str, list[str]] = field(default_factory=dict)
    reason: str = ""
    error: str = ""
    stderr: list[str] = field(default_factory=list)


def check(config: Config, *, as_json: bool) -> int:
    """Print what each server offers; 1 if one failed."""
    reports = asyncio.run(_check_all(gateway_settings(config).upstreams))
    if as_json:
        click.echo(json.dumps({"servers": [asdict(report) for report in reports]}, ensure_ascii=False, indent=2))
    else:
        for report in reports:
            click.echo(_text(report))
    return 0 if all(report.ok for report in reports) else 1


async def _check_all(upstreams: tuple[UpstreamSettings, ...]) -> list[Report]:
    places = asyncio.Semaphore(AT_ONCE)

    async def one(upstream: UpstreamSettings) -> Report:
        async with places:
            return await _check(upstream)

    return list(await asyncio.gather(*map(one, upstreams)))


async def _check(upstream: UpstreamSettings) -> Report:
    report, talk = Report(upstream.name), _Talk()
    began = time.monotonic()
    child: Child | None = None
    try:
        async with asyncio.timeout(upstream.deadlines.start):
            child = await start(upstream.name, upstream.command, upstream.limits, talk)
            talk.begin(child)
            await _ask_all(report, talk)
        report.ok = True
    except TimeoutError:
        report.reason, report.error = "start_timed_out", f"no answer within {upstream.deadlines.start:g} s"
    except GatewayFault as fault:
        report.reason, report.error = fault.reason, fault.message
    report.seconds = round(time.monotonic() - began, 3)
    if child is not None:
        await child.stop()
        report.stderr = [] if report.ok else child.stderr.tail()
    return report


async def _ask_all(report: Report, talk: "_Talk") -> None:
    params: dict[str, object] = {
        "protocolVersion": NEWEST_HANDSHAKE.date,
        "capabilities": {},
        "clientInfo": {"name": "viaduct-check", "version": "1"},
    }
    greeted = await talk.ask("initialize", params)
    report.version, report.info = str(greeted.get("protocolVersion", "")), greeted.get("serverInfo")
    talk.say(Notification("notifications/initialized"))
    capabilities = greeted.get("capabilities")
    for name, method, capability in _LISTS:
        if isinstance(capabilities, dict) and capability in capabilities:
            report.offers[name] = await _all_pages(talk, method, "resourceTemplates" if name == "templates" else name)


async def _all_pages(talk: "_Talk", method: str, key: str) -> list[str]:
    names: list[str] = []
    params: dict[str, object] = {}
    for _ in range(PAGES_MAX):
        try:
            page = await talk.ask(method, params)
        except UnknownMethod:
            break
        items = page.get(key)
        names += (
            [str(item.get("name", "")) for item in items if isinstance(item, dict)] if isinstance(items, list) else []
        )
        if not page.get("nextCursor"):
            break
        params = {"cursor": page["nextCursor"]}
    return names


class _Talk:
    """One question of ours at a time, and its answer. The server's own are answered too: some wait for that."""

    def __init__(self) -> None:
        self._child: Child | None = None
        self._early: list[Message] = []
        self._count = 0
        self._answer: asyncio.Future[Raw] | None = None
        self._exit: Exit | None = None

    def begin(self, child: Child) -> None:
        """What it asked before we had it is answered now."""
        self._child = child
        for message in self._early:
            self.say(message)

    def say(self, message: Message) -> None:
        if self._child is None:
            self._early.append(message)
        else:
            self._child.write(line(message))

    async def ask(self, method: str, params: dict[str, object]) -> dict[str, object]:
        self._count += 1
        self._answer = asyncio.get_running_loop().create_future()
        if self._exit is not None:
            self.on_exit(self._exit)
        self.say(Request(self._count, method, payload(params)))
        return _objects.decode(await self._answer)

    def on_line(self, text: bytes) -> None:
        try:
            messages = read_all(text)
        except ClientFault:
            return
        for message in messages if isinstance(messages, list) else [messages]:
            self._heard(message)

    def on_oversize(self) -> None:
        self._fail(Unavailable("a line was longer than limits.line", reason="spoke_nonsense"))

    def on_exit(self, exit: Exit) -> None:  # noqa: A002 - the field's word
        self._exit = exit
        self._fail(Unavailable(f"the server ended: {exit.describe()}", reason="exited_before_ready"))

    def _heard(self, message: Message) -> None:
        match message:
            case Request() if message.method == PING:
                self.say(result(message.id, {}))
            case Request():
                self.say(failure(message.id, UnknownMethod("only a ping is answered here", reason="checking")))
            case Notification():
                pass
            case Result() | Failure():
                self._answered(message)

    def _answered(self, message: Result | Failure) -> None:
        if self._answer is None or self._answer.done():
            return
        match message:
            case Result() if message.id == self._count:
                self._answer.set_result(message.result)
            case Failure() if message.id == self._count and error_code(message.error) == UnknownMethod.code:
                self._fail(UnknownMethod("the server does not know this method"))
            case Failure() if message.id == self._count:
                self._fail(Unavailable(f"the server answered with an error: {bytes(message.error).decode()}"))
            case _:
                pass

    def _fail(self, fault: GatewayFault) -> None:
        if self._answer is not None and not self._answer.done():
            self._answer.set_exception(fault)


def _text(report: Report) -> str:
    if not report.ok:
        tail = "".join(f"\n      {text}" for text in report.stderr)
        return f"FAILED  {report.server}  {report.error}{tail}"
    offers = ", ".join(f"{len(names)} {kind}" for kind, names in report.offers.items()) or "nothing"
    names = "".join(f"\n      {kind}: {', '.join(names)}" for kind, names in report.offers.items() if names)
    return f"ok      {report.server}  {report.seconds:.2f} s, revision {report.version}, offers {offers}{names}"
