"""When the configuration is read again, and what is told of that."""

import asyncio
import json
import logging
import os
import signal
from collections.abc import Callable, Coroutine, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from app.cli.reloading import Reloading
from app.config import Config, ConfigError, load
from app.core.succession import Succession
from app.telemetry.tally import Tally
from tests.cli.viaduct import SECONDS, WEATHER, environment, serving
from tests.support.gateway import eventually
from tests.support.http import soon

QUICK = 0.01


class World:
    """A file, and who reads it."""

    def __init__(self, folder: Path) -> None:
        self.path = folder / "viaduct.json"
        self.write()
        self.adopted: list[Config] = []
        self.reads = 0
        self.wrong: str | None = None
        self.tally = Tally()
        self.running = Reloading(load(self.path, {}), self.read, self.adopt, self.tally)

    def write(self, text: str | None = None, **viaduct: object) -> None:
        server = {"command": "true"}
        tree = {"mcpServers": {"a": server}, "viaduct": {"watchInterval": QUICK, **viaduct}}
        self.path.with_suffix(".new").write_text(json.dumps(tree) if text is None else text)
        self.path.with_suffix(".new").rename(self.path)

    def read(self) -> Config:
        self.reads += 1
        if self.wrong is not None:
            raise ConfigError(self.wrong)
        return load(self.path, {})

    def adopt(self, former: Config, following: Config) -> Succession:
        self.adopted.append(following)
        return Succession(added=("b",))

    async def counted(self, result: str, number: int) -> bool:
        async def is_so() -> bool:
            return self.tally.reloads[result] == number

        return await soon(is_so, 3)


def in_world(test: Callable[[World], Coroutine[Any, Any, None]]) -> Callable[[Path], None]:
    def run(tmp_path: Path) -> None:
        async def within() -> None:
            world = World(tmp_path)
            world.running.start()
            try:
                await test(world)
            finally:
                world.running.stop()

        asyncio.run(within())

    run.__name__ = test.__name__
    return run


@in_world
async def test_another_file_takes_over_and_the_same_does_not(world: World) -> None:
    async def has_read() -> bool:
        return world.reads > 0

    assert await soon(has_read, 3)
    assert world.adopted == []
    world.write(drain=7)
    assert await world.counted("applied", 1)
    world.write(drain=7)
    world.write(drain=8)
    assert await world.counted("applied", 2)
    assert [config.viaduct.drain for config in world.adopted] == [7, 8]


@in_world
async def test_what_is_told_to_be_read_is_taken_though_it_is_the_same(world: World) -> None:
    world.running.tell()
    assert await world.counted("applied", 1)
    world.running.tell()
    assert await world.counted("applied", 2)


@in_world
async def test_a_file_that_is_gone_is_refused_and_the_next_one_is_taken(world: World) -> None:
    world.path.unlink()
    assert await world.counted("refused", 1)
    world.write(drain=9)
    assert await world.counted("applied", 1)


@in_world
async def test_what_was_refused_counts_as_taken_when_it_is_put_right_again(world: World) -> None:
    """Whoever mended it wants to hear that it is well now."""
    whole = world.path.read_text()
    world.write("{")
    assert await world.counted("refused", 1)
    world.write(whole)
    assert await world.counted("applied", 1)


def test_a_refusal_is_logged_once_for_each_content(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    async def run(world: World) -> None:
        world.write("{")
        assert await world.counted("refused", 1)
        reads = world.reads

        async def has_tried_again() -> bool:
            return world.reads >= reads + 3

        assert await soon(has_tried_again, 3)
        world.write("[")
        assert await world.counted("refused", 2)

    with caplog.at_level(logging.ERROR, "viaduct.config"):
        in_world(run)(tmp_path)
    assert [record.getMessage() for record in caplog.records] == ["configuration refused, the one before stays"] * 2


@in_world
async def test_where_nobody_looks_it_is_read_when_told(world: World) -> None:
    world.write(watchInterval=None)
    assert await world.counted("applied", 1)
    world.write(watchInterval=None, drain=1)
    world.running.tell()
    assert await world.counted("applied", 2)
    assert world.adopted[-1].viaduct.drain == 1


@in_world
async def test_a_mistake_of_ours_does_not_keep_the_next_one_from_being_taken(world: World) -> None:
    adopt, mistakes = world.adopt, asyncio.Event()

    def fail(*_: Config) -> Succession:
        mistakes.set()
        raise AssertionError

    world.running._adopt = fail
    world.write(drain=1)
    await asyncio.wait_for(mistakes.wait(), 3)
    world.running._adopt = adopt
    world.write(drain=2)
    assert await world.counted("applied", 1)


# The command.


def test_without_a_file_a_hangup_does_nothing(tmp_path: Path) -> None:
    with serving(tmp_path, "demo", "--port", "0", "--no-auth") as gateway:
        gateway.process.send_signal(signal.SIGHUP)
        assert eventually(lambda: "there is no file to reload" in gateway.log.read_text(), 5)
        assert gateway.stop() == 0


def config_file(tmp_path: Path) -> Path:
    path = tmp_path / "viaduct.json"
    server = {"command": WEATHER[0], "args": list(WEATHER[1:])}
    path.write_text(json.dumps({"mcpServers": {"weather": server}, "viaduct": {"listen": "127.0.0.1:0"}}))
    return path


def test_that_nobody_could_be_let_in_any_more_is_refused(tmp_path: Path) -> None:
    path = config_file(tmp_path)
    whole = path.read_text()
    token = {"name": "a", "hash": "sha256:" + "0" * 64}
    path.write_text(json.dumps(json.loads(whole) | {"viaduct": {"auth": {"tokens": [token]}, "listen": "127.0.0.1:0"}}))
    with serving(tmp_path, "serve", str(path)) as gateway:
        path.write_text(whole)
        assert eventually(lambda: "nobody could be let in any more" in gateway.log.read_text(), 5)
        assert gateway.stop() == 0


@contextmanager
def in_terminal(*arguments: str) -> Iterator[tuple[int, int]]:
    """The command in a terminal of its own: its pid, and our end of the terminal."""
    import pty
    import sys

    command = [sys.executable, "-m", "app", *arguments]
    pid, master = pty.fork()
    if pid == 0:
        os.execve(command[0], command, environment())
    try:
        yield pid, master
    finally:
        if os.waitid(os.P_PID, pid, os.WEXITED | os.WNOHANG | os.WNOWAIT) is None:
            os.kill(pid, signal.SIGKILL)
        os.waitpid(pid, 0)


def test_who_was_started_from_a_terminal_ends_with_it(tmp_path: Path) -> None:
    with in_terminal("serve", str(config_file(tmp_path)), "--no-auth") as (pid, terminal):
        said = b""
        while b"Cursor" not in said:
            said += os.read(terminal, 65536)
        os.close(terminal)
        ended = eventually(lambda: os.waitid(os.P_PID, pid, os.WEXITED | os.WNOHANG | os.WNOWAIT), SECONDS)
        assert ended
