"""Starting each server once, asking what it offers, and stopping it: what `viaduct check` does."""

import asyncio
import json
import time
from dataclasses import asdict, dataclass, field, replace

import click
from msgspec import DecodeError, Raw
from msgspec.json import Decoder

from app.asgi import gateway_settings, policy
from app.auth.principal import ANONYMOUS, Principal
from app.cli import permitting
from app.cli.joined import Joined, joined, lines
from app.config import Config
from app.core.eras import Eras
from app.core.parties import Party
from app.core.supervision import Ending
from app.gateway.common import CommonChild
from app.gateway.credentials import unbound
from app.gateway.settings import GatewaySettings, UpstreamSettings
from app.gateway.supervisor import Supervisor
from app.gateway.tasks import Tasks
from app.protocol.faults import GatewayFault, SpokeNonsense, Unavailable, UnknownMethod
from app.protocol.jsonrpc import Failure, Message, Request, Result, payload
from app.protocol.methods import error_code
from app.protocol.revisions import MODERN
from app.protocol.stateless import SERVER_INFO_KEY, Envelope, with_envelope
from app.telemetry.logs import printable
from app.upstreams.protections import protections

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
    cut: list[str] = field(default_factory=list)
    """Of which of these there is more than was read."""
    reason: str = ""
    error: str = ""
    stderr: list[str] = field(default_factory=list)
    exit_code: int | None = None
    signal: int | None = None
    """Of the process, where it ended by itself."""
    protections: list[str] = field(default_factory=list)
    """What protects this machine from it, and what does not."""
    items: dict[str, list[dict[str, object]]] = field(default_factory=dict)
    """All that was said of what it offers; too much to be printed."""


def check(config: Config, *, as_json: bool) -> int:
    """Print what each server offers, and what they are together; 1 if one failed, or two things have one name."""
    settings = gateway_settings(config)
    nobodys = replace(settings, upstreams=tuple(map(unbound, settings.upstreams)))
    reports = asyncio.run(_check_all(nobodys))
    together = joined(settings.joints, {report.server: report.items for report in reports if report.ok})
    if as_json:
        click.echo(json.dumps(_tree(config, reports, together), ensure_ascii=False, indent=2))
    else:
        rules, offered = policy(config), {report.server: report.items for report in reports}
        may = permitting.lines(rules, _principals(config), offered) if rules is not None else []
        for text in (*map(_text, reports), *lines(together), *may):
            click.echo(text)
    is_well = all(report.ok for report in reports) and not any(each.conflicts for each in together)
    return 0 if is_well else 1


def _tree(config: Config, reports: list[Report], together: list[Joined]) -> dict[str, object]:
    servers = [{key: value for key, value in asdict(report).items() if key != "items"} for report in reports]
    rules, offered = policy(config), {report.server: report.items for report in reports}
    tree: dict[str, object] = {"servers": servers}
    if together:
        tree["joined"] = [asdict(each) for each in together]
    if rules is not None:
        tree["principals"] = [
            {"name": each.name, "servers": permitting.permitted(rules, each, offered)} for each in _principals(config)
        ]
    return tree


def _principals(config: Config) -> list[Principal]:
    """All that are known before they come."""
    tokens = config.viaduct.auth.tokens
    return [ANONYMOUS] if config.no_auth else [Principal(token.name, frozenset(token.scopes)) for token in tokens]


async def _check_all(settings: GatewaySettings) -> list[Report]:
    places, tasks = asyncio.Semaphore(settings.supervisor.starts_max), Tasks()
    supervisor = Supervisor(settings.supervisor, tasks)

    async def one(upstream: UpstreamSettings) -> Report:
        async with places:
            return await _check(upstream, settings.version, supervisor)

    reports = list(await asyncio.gather(*map(one, settings.upstreams)))
    await tasks.finish()
    return reports


async def _check(upstream: UpstreamSettings, version: str, supervisor: Supervisor) -> Report:
    report, asker = Report(upstream.name, protections=list(map(str, protections(upstream.command)))), _Asker()
    began = time.monotonic()
    eras = Eras(upstream.era)
    child = CommonChild(upstream, supervisor, version, eras, modern_client=False, on_lost=asker.on_lost)
    asker.begin(child)
    try:
        async with asyncio.timeout(upstream.deadlines.start):
            await _ask_all(report, asker)
        report.ok = True
    except TimeoutError:
        report.reason, report.error = "start_timed_out", f"no answer within {upstream.deadlines.start:g} s"
    except GatewayFault as fault:
        report.reason, report.error = fault.reason, fault.message
    report.seconds = round(time.monotonic() - began, 3)
    _read_ending(report, supervisor.views([upstream])[0].last, child)
    child.close()
    return report


def _read_ending(report: Report, last: Ending | None, child: CommonChild) -> None:
    """What its supervisor saw of its end; a server that did not answer lives still."""
    if report.ok:
        return
    report.stderr = child.stderr_tail() if last is None else list(last.stderr)
    if last is not None:
        report.exit_code, report.signal = last.code, last.signal


async def _ask_all(report: Report, asker: "_Asker") -> None:
    child = await asker.child()
    said = _object(child.greeted)
    if child.is_modern:
        report.version = MODERN.date
        meta = said.get("_meta")
        report.info = meta.get(SERVER_INFO_KEY) if isinstance(meta, dict) else None
    else:
        report.version, report.info = str(said.get("protocolVersion", "")), said.get("serverInfo")
    capabilities = said.get("capabilities")
    for name, method, capability in _LISTS:
        if isinstance(capabilities, dict) and capability in capabilities:
            items, is_whole = await _all_pages(asker, method, "resourceTemplates" if name == "templates" else name)
            report.items[name], report.offers[name] = items, [str(item.get("name", "")) for item in items]
            if not is_whole:
                report.cut.append(name)


async def _all_pages(asker: "_Asker", method: str, key: str) -> tuple[list[dict[str, object]], bool]:
    """What is on them, and whether these are all."""
    found: list[dict[str, object]] = []
    params: dict[str, object] = {}
    for _ in range(PAGES_MAX):
        try:
            page = await asker.ask(method, params)
        except UnknownMethod:
            return found, True
        items = page.get(key)
        found += [item for item in items if isinstance(item, dict)] if isinstance(items, list) else []
        if not page.get("nextCursor"):
            return found, True
        params = {"cursor": page["nextCursor"]}
    return found, False


class _Asker:
    """Uses the child as a session would: one question of ours at a time, and its answer."""

    def __init__(self) -> None:
        self._ready: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._answer: asyncio.Future[Raw] | None = None
        self._fault: GatewayFault | None = None
        self._ident = 0
        self._child: CommonChild
        self._party: Party

    def begin(self, child: CommonChild) -> None:
        self._child = child
        self._party = child.join(self)

    async def child(self) -> CommonChild:
        """Once it can be asked."""
        await self._ready
        return self._child

    async def ask(self, method: str, params: dict[str, object]) -> dict[str, object]:
        if self._fault is not None:
            raise self._fault
        self._answer = asyncio.get_running_loop().create_future()
        self._ident = next(self._child.mint)
        said = payload(params)
        if self._child.is_modern:
            said = with_envelope(said, Envelope(MODERN.date, {}))
        self._child.submit(self._party, Request(self._ident, method, said))
        return _object(await self._answer)

    # As a member of the child's.

    def ready(self) -> None:
        if not self._ready.done():
            self._ready.set_result(None)

    def deliver(self, message: Message) -> None:
        match message:
            case Result() if message.id == self._ident and self._answer is not None and not self._answer.done():
                self._answer.set_result(message.result)
            case Failure() if message.id == self._ident and error_code(message.error) == UnknownMethod.code:
                self.lost(UnknownMethod("the server does not know this method"), is_final=False)
            case Failure() if message.id == self._ident:
                error = bytes(message.error).decode()
                self.lost(Unavailable(f"the server answered with an error: {error}"), is_final=False)
            case _:
                pass

    def lost(self, fault: GatewayFault, *, is_final: bool = True) -> None:
        if is_final:
            self._fault = fault
        for future in (self._ready, self._answer):
            if future is not None and not future.done():
                future.set_exception(fault)

    def on_lost(self) -> None:
        """Told as a member too."""


def _object(said: Raw | None) -> dict[str, object]:
    """
    Raises:
        SpokeNonsense: what should be an object is none.
    """
    try:
        return _objects.decode(said or b"null")
    except DecodeError as wrong:
        raise SpokeNonsense("the server answered with what is no object") from wrong


def _text(report: Report) -> str:
    guarded = f"\n      protections: {', '.join(report.protections)}"
    if not report.ok:
        tail = "".join(f"\n      {text}" for text in report.stderr)
        return f"FAILED  {report.server}  {printable(report.error)}{tail}{guarded}"
    offers = ", ".join(f"{len(names)} {kind}" for kind, names in report.offers.items()) or "nothing"
    names = "".join(
        f"\n      {kind}: {', '.join(map(printable, names))}" for kind, names in report.offers.items() if names
    )
    revision = printable(report.version)
    cut = "".join(f"\n      there are more {kind}; after {PAGES_MAX} pages no more were read" for kind in report.cut)
    said = f"{report.seconds:.2f} s, revision {revision}, offers {offers}{names}{cut}"
    return f"ok      {report.server}  {said}{guarded}"
