"""The server that the command line owns: it binds first, drains on the first signal, and hurries on the second."""

import asyncio
import contextlib
import ctypes
import errno
import logging
import os
import signal
import socket
from collections.abc import Iterator

import uvicorn

from app.asgi import create_app
from app.cli.banner import banner
from app.cli.launch import Launch
from app.config.errors import ConfigError
from app.config.tree import Limits
from app.edge.app import Viaduct
from app.edge.wire import WireLimits, protocol

log = logging.getLogger("viaduct")

_GRACE_SECONDS = 3
_BACKLOG = 2048
_PR_SET_PDEATHSIG = 1


def serve_until_stopped(launch: Launch) -> int:
    """Serve until a signal says stop; the exit code.

    Raises:
        ConfigError: the address cannot be listened on.
    """
    listener = _bind(launch.host, launch.port)
    config = launch.config
    limits = config.viaduct.limits
    server_config = uvicorn.Config(
        None,  # type: ignore[arg-type]  # the application is built on the loop, a few lines down
        loop="uvloop",
        http=protocol(_wire_limits(limits)),
        ws="none",
        lifespan="on",
        access_log=False,
        log_config=None,
        server_header=False,
        proxy_headers=False,
        backlog=_BACKLOG,
        timeout_graceful_shutdown=_GRACE_SECONDS,
    )
    with asyncio.Runner(loop_factory=server_config.get_loop_factory()) as runner:
        runner.run(_serve(launch, server_config, listener))
    return 0


async def _serve(launch: Launch, server_config: uvicorn.Config, listener: socket.socket) -> None:
    app = create_app(launch.config)
    server_config.app = app
    server = _Server(server_config, app, launch, listener)
    if launch.exit_with_parent:
        _die_with_parent()
    await server.serve(sockets=[listener])


class _Server(uvicorn.Server):
    """uvicorn's own reaction to a signal waits for open streams before it tells anybody; ours comes before it."""

    def __init__(self, config: uvicorn.Config, app: Viaduct, launch: Launch, listener: socket.socket) -> None:
        super().__init__(config)
        self._app = app
        self._launch = launch
        self._listener = listener
        self._draining: asyncio.Task[None] | None = None

    @contextlib.contextmanager
    def capture_signals(self) -> Iterator[None]:
        loop = asyncio.get_running_loop()
        for number in (signal.SIGTERM, signal.SIGINT):
            loop.add_signal_handler(number, self._signalled, number)
        try:
            yield
        finally:
            for number in (signal.SIGTERM, signal.SIGINT):
                loop.remove_signal_handler(number)

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        await super().startup(sockets=sockets)
        address = self._listener.getsockname()
        print(banner(self._launch, address[0], address[1]), flush=True)  # noqa: T201 - what the command is for

    def _signalled(self, number: signal.Signals) -> None:
        if self._draining is None:
            log.info("stopping", extra={"signal": number})
            self._draining = asyncio.get_running_loop().create_task(self._drain())
        else:
            log.warning("stopping fast", extra={"signal": number})
            self._app.gateway.hurry()

    async def _drain(self) -> None:
        try:
            await self._app.gateway.drain(self._launch.config.viaduct.drain)
        finally:
            self.should_exit = True


def _wire_limits(limits: Limits) -> WireLimits:
    return WireLimits(
        header_bytes=limits.header_bytes,
        header_count=limits.header_count,
        url_bytes=limits.url_bytes,
        body_bytes=limits.body,
        header_seconds=limits.header_timeout,
        body_seconds=limits.body_timeout,
        send_seconds=limits.send_timeout,
        max_connections=limits.connections,
    )


def _bind(host: str, port: int) -> socket.socket:
    try:
        family, kind, proto, _, address = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)[0]
        listener = socket.socket(family, kind, proto)
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listener.bind(address)
    except OSError as wrong:
        raise ConfigError(f"cannot listen on {host}:{port}: {_cause(wrong)}") from wrong
    listener.set_inheritable(False)
    return listener


def _cause(wrong: OSError) -> str:
    if wrong.errno == errno.EADDRINUSE:
        return "the port is in use; choose another with --port"
    if wrong.errno == errno.EACCES:
        return "that is not permitted; choose a port above 1023"
    return f"{(wrong.strerror or str(wrong)).lower()}; choose another with --host"


def _die_with_parent() -> None:
    """Be told to stop when the process that started us ends; it may have ended already."""
    libc = ctypes.CDLL(None, use_errno=True)
    parent = os.getppid()
    libc.prctl(_PR_SET_PDEATHSIG, signal.SIGTERM)
    if os.getppid() != parent or parent == 1:
        os.kill(os.getpid(), signal.SIGTERM)
