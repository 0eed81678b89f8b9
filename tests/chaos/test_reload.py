"""The config file written anew again and again, whole and in pieces, while clients call."""

import asyncio
import threading
from collections.abc import Callable, Coroutine, Iterable, Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.support.client import Client
from tests.support.gateway import Gateway, config, entry, eventually, serving, stateless_entry
from tests.support.http import on_loop, soon
from tests.support.reloading import path_of, put, reloads, text_of
from tests.support.stateless import StatelessClient

SECONDS = 5.0
PER_SECOND = 50
QUICK: dict[str, Any] = {"stopTimeout": 0.3, "killTimeout": 0.3}


def content(revision: int) -> dict[str, Any]:
    """One server never changes, three always do, and one comes and goes."""
    of_revision = {"env": {"REVISION": str(revision)}, **QUICK}
    servers = {
        "steady": entry(**QUICK),
        "own": entry() | of_revision,
        "shared": entry(isolation="shared") | of_revision,
        "stateless": stateless_entry() | of_revision,
    }
    if revision % 2:
        servers["passing"] = entry(warm=1, **QUICK)
    return config(servers, watchInterval=0.05, drain=3)


@pytest.fixture
def gateway(tmp_path: Path) -> Iterator[Gateway]:
    with serving(content(0), tmp_path) as gateway:
        yield gateway


class Writer(threading.Thread):
    """Every third time in two pieces, into the file that is there."""

    def __init__(self, gateway: Gateway) -> None:
        super().__init__()
        self.revision = 0
        self._gateway = gateway
        self._is_over = threading.Event()

    def run(self) -> None:
        path = path_of(self._gateway)
        for self.revision in range(1, int(SECONDS * PER_SECOND) + 1):
            text = text_of(self._gateway, content(self.revision))
            if self.revision % 3:
                put(path, text)
                self._is_over.wait(1 / PER_SECOND)
            else:
                with path.open("w") as file:
                    file.write(text[: len(text) // 2])
                    file.flush()
                    self._is_over.wait(1 / PER_SECOND)
                    file.write(text[len(text) // 2 :])

    def stop(self) -> None:
        self._is_over.set()
        self.join()


async def calling(call: Callable[[str], Coroutine[Any, Any, str]], is_over: Callable[[], bool]) -> int:
    """How many calls were answered: all of them."""
    count = 0
    while not is_over():
        count += 1
        assert await call(f"n{count}") == f"n{count}"
    return count


def revisions(pids: Iterable[int]) -> set[str]:
    """Of those children that are there and have one."""
    found = set()
    for pid in pids:
        try:
            variables = Path(f"/proc/{pid}/environ").read_bytes().split(b"\0")
        except OSError:
            continue
        found |= {each.decode() for each in variables if each.startswith(b"REVISION=")}
    return found


@pytest.mark.slow
@on_loop
async def test_fifty_files_a_second_lose_no_call_and_the_last_one_is_what_runs(gateway: Gateway) -> None:
    sessions = [await Client(gateway, server).open() for server in ("steady", "own", "shared", "stateless")]
    requests = [StatelessClient(gateway, server) for server in ("steady", "own", "shared", "stateless")]
    pids = await sessions[0].tool("pid"), await requests[0].tool("pid")
    writer = Writer(gateway)
    writer.start()
    try:
        calls = [
            calling(lambda nonce, client=client: client.tool("echo", nonce=nonce), lambda: not writer.is_alive())
            for client in (*sessions, *requests)
        ]
        counts = await asyncio.gather(*calls)
    finally:
        writer.stop()
    assert min(counts) >= 10, counts
    assert await reloads(gateway) >= 1, "none was taken while they were rewritten"
    last = f"REVISION={writer.revision}"

    async def are_last() -> bool:
        return revisions([int(await each.tool("pid")) for each in (*sessions[1:], *requests[1:])]) == {last}

    assert await soon(are_last, 5), gateway.log
    assert eventually(lambda: revisions(gateway.children()) == {last}, 5), revisions(gateway.children())
    assert (await sessions[0].tool("pid"), await requests[0].tool("pid")) == pids
