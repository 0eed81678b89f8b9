"""The server that the command line owns: it drains on the first signal, and hurries on the second.

uvicorn's own reaction to a signal is to wait until open connections close, which an event stream never does; and other
libraries hook into that reaction. So none of it is used: the signals are ours.
"""

import asyncio
import contextlib
import gc
import logging
import signal
import socket
from collections.abc import AsyncIterator, Callable, Iterator

import uvicorn

from app.asgi import create_app
from app.cli import parent, signals, streams
from app.cli.hardening import refuse_root
from app.cli.listener import BACKLOG, listener
from app.cli.memory import give_back
from app.cli.reloading import Reloading
from app.config import Config, ConfigError
from app.config.listening import Listen
from app.config.tree import Viaduct as Settings
from app.core.succession import Succession
from app.edge.app import Viaduct
from app.edge.wire import Files, WireLimits, protocol
from app.edge.wire_recall import Recall
from app.reloading import adopt
from app.telemetry.tally import Tally
from app.upstreams.guardian import Guardian
from app.upstreams.machine import raise_open_files
from app.upstreams.reaper import Reaper, adopt_orphans

log = logging.getLogger("viaduct")

Banner = Callable[[Listen], str]

_GARBAGE_THRESHOLDS = (10_000, 20, 20)
"""A call makes objects and no cycles, so that looking for cycles often finds nothing, and takes time."""


def serve_until_stopped(
    config: Config, banner: Banner, *, exit_with_parent: bool = False, read: Callable[[], Config] | None = None
) -> int:
    """Serve until a signal says stop; the exit code. `read` reads the configuration again, where it is from a file.

    Raises:
        ConfigError: the address cannot be listened on, or not as root, or two things have one name.
    """
    raise_open_files()
    give_back()
    with listener(config.listen) as taken:
        refuse_root(config.listen, is_allowed=config.may_be_root)
        settings = _uvicorn(config)
        with asyncio.Runner(loop_factory=settings.get_loop_factory()) as runner:
            return runner.run(_serve(config, settings, taken, banner, exit_with_parent, read))


async def _serve(
    config: Config,
    settings: uvicorn.Config,
    taken: socket.socket,
    banner: Banner,
    exit_with_parent: bool,
    read: Callable[[], Config] | None,
) -> int:
    app = create_app(config)
    settings.app = app
    settings.http = _http(config, app.tally, app.gateway.supervisor.room.files)
    server = _Server(settings, app, config.viaduct)
    server.on_listening = lambda: streams.show(banner(Listen(*taken.getsockname()[:2])))
    server.exit_with_parent = exit_with_parent
    server.reloading = None if read is None else Reloading(config, read, server.adopt, app.tally)
    try:
        async with _leaving_nobody():
            await server.serve(sockets=[taken])
    except SystemExit:
        # uvicorn's way to say that the application's start failed; it has logged why.
        if app.disagreement:
            raise ConfigError(f"viaduct.naming: {app.disagreement}") from None
        return 1
    return 0


@contextlib.asynccontextmanager
async def _leaving_nobody() -> AsyncIterator[None]:
    """This process is ours alone, so what our children leave behind may become ours too; and if we are killed, somebody
    is there who is not."""
    reaper, guardian = Reaper(), Guardian()
    if adopt_orphans():
        reaper.start(asyncio.get_running_loop())
    guardian.start()
    try:
        yield
    finally:
        reaper.stop()
        await guardian.end()


class _Server(uvicorn.Server):
    on_listening: Callable[[], None]
    exit_with_parent = False
    reloading: Reloading | None = None

    def __init__(self, config: uvicorn.Config, app: Viaduct, settings: Settings) -> None:
        super().__init__(config)
        self._app = app
        self._settings = settings
        self._draining: asyncio.Task[None] | None = None

    @contextlib.contextmanager
    def capture_signals(self) -> Iterator[None]:
        loop = asyncio.get_running_loop()
        for number in signals.STOPPING:
            loop.add_signal_handler(number, self._signalled, number)
        loop.add_signal_handler(signal.SIGHUP, self._hung_up)
        try:
            if self.exit_with_parent:
                parent.stop_with_it()
            yield
        finally:
            for number in (*signals.STOPPING, signal.SIGHUP):
                loop.remove_signal_handler(number)
            signals.heed()

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        await super().startup(sockets=sockets)
        if self.started:
            _spare_collector()
            if self.reloading is not None:
                self.reloading.start()
            self.on_listening()

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        if self.reloading is not None:
            self.reloading.stop()
        if self._draining is not None:
            await self._draining
        await super().shutdown(sockets=sockets)

    def adopt(self, former: Config, following: Config) -> Succession:
        """Serve by another configuration.

        Raises:
            ConfigError: it cannot take the place of the one that runs.
        """
        change = adopt(self._app, former, following)
        self._settings = following.viaduct
        for connection in self.server_state.connections:
            if isinstance(connection, Recall):
                connection.forget()
        return change

    def _hung_up(self) -> None:
        if signals.is_end_of_terminal():
            self._signalled(signal.SIGHUP)
        elif self.reloading is None:
            log.info("there is no file to reload, so SIGHUP does nothing")
        else:
            self.reloading.tell()

    def _signalled(self, number: signal.Signals) -> None:
        if self._draining is None:
            log.info("stopping", extra={"signal": number.name})
            if self.reloading is not None:
                self.reloading.stop()
            self._draining = asyncio.get_running_loop().create_task(self._drain())
        else:
            log.warning("stopping fast", extra={"signal": number.name})
            self.config.timeout_graceful_shutdown = 0
            self._app.gateway.hurry()

    async def _drain(self) -> None:
        budget = self._settings.drain
        try:
            async with asyncio.timeout(budget + self._settings.drain_overtime):
                await self._app.gateway.drain(budget)
        except TimeoutError:
            log.warning("the drain takes too long: going without what is left")
            self._app.gateway.hurry()
        finally:
            self.should_exit = True


def _spare_collector() -> None:
    """What was imported lives as long as we do: searched again and again, it stops every call for 10 ms."""
    gc.collect()
    gc.freeze()
    gc.set_threshold(*_GARBAGE_THRESHOLDS)


def _uvicorn(config: Config) -> uvicorn.Config:
    settings = config.viaduct
    return uvicorn.Config(
        None,  # type: ignore[arg-type]  # the application is built on the loop, and what reads HTTP knows it
        loop="auto",
        ws="none",
        lifespan="on",
        access_log=False,
        log_config=None,
        server_header=False,
        proxy_headers=False,
        backlog=BACKLOG,
        timeout_keep_alive=settings.limits.keep_alive_timeout,  # type: ignore[arg-type]  # fractions are fine, too
        timeout_graceful_shutdown=settings.close_timeout,  # type: ignore[arg-type]
    )


def _http(config: Config, tally: Tally, files: Files | None = None) -> type[asyncio.Protocol]:
    limits = config.viaduct.limits
    taken = WireLimits(
        header_bytes=limits.header_bytes,
        header_count=limits.header_count,
        url_bytes=limits.url_bytes,
        body_bytes=limits.body,
        header_seconds=limits.header_timeout,
        body_seconds=limits.body_timeout,
        send_seconds=limits.send_timeout,
        answer_seconds=limits.answer_timeout,
        linger_seconds=limits.linger_timeout,
        linger_bytes=limits.linger_bytes,
        max_pipelined=limits.pipelined,
        max_connections=limits.connections,
    )
    return protocol(taken, tally, files)
