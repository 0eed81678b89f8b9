"""Too few children or descriptors for all: who has one goes on, who needs one waits, and nothing spins meanwhile."""

import asyncio
import json
import os
import resource
import signal
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from tests.chaos.bounded import BRISK, answered, echoing, opening
from tests.chaos.planting import program
from tests.support.client import Client, KeptAlive, called, greeting
from tests.support.gateway import OTHER_TOKEN, Gateway, config, entry, eventually, serving
from tests.support.http import Reply, connection, on_loop, request, soon
from tests.support.stateless import CALL

# Children.


@on_loop
async def reopened_while_a_child_is_missing(gateway: Gateway) -> None:
    client = await Client(gateway).open()
    assert (await client.call(CALL, called("die")))["error"]["code"] == -31002
    other = Client(gateway, token=OTHER_TOKEN)
    assert await soon(lambda: opens(other), 2)
    waiting = asyncio.create_task(client.tool("echo", nonce="after all"))
    assert await soon(lambda: is_written(gateway, "session waits for another child"), 2)
    await echoing(other)()
    done, _ = await asyncio.wait([waiting], timeout=0.7)
    assert not done
    assert (await other.delete()).status == 204
    assert await waiting == "after all"
    assert await client.tool("count") == "1"


async def opens(client: Client) -> bool:
    reply = await client.post(greeting())
    client.session = reply.headers.get("mcp-session-id")
    await client.settle(reply, 0)
    return reply.status == 200


async def is_written(gateway: Gateway, words: str) -> bool:
    return words in gateway.log


def test_a_session_whose_child_died_waits_where_somebody_new_has_taken_its_place(tmp_path: Path) -> None:
    content = config({"stage": entry(**BRISK)}, limits={"children": 1}, restarts={"backoff": 0.5})
    with serving(content, tmp_path) as gateway:
        reopened_while_a_child_is_missing(gateway)


def test_children_that_nobody_waits_for_leave_places_to_others(tmp_path: Path) -> None:
    @on_loop
    async def check() -> None:
        for _ in range(3):  # The third in the place of one that was kept warm.
            await Client(gateway).open()
        for _ in range(7):
            await Client(gateway, "eager").open()
        reply = await opening(gateway)()
        assert (reply.status, (await reply.json())["error"]["data"]["reason"]) == (503, "limits.children")
        assert (await Client(gateway, "eager").post(greeting())).status == 503

    servers = {"eager": entry(**BRISK, warm=9), "stage": entry(**BRISK)}
    with serving(config(servers, limits={"children": 10}, starts=10), tmp_path) as gateway:
        assert eventually(lambda: gateway.log.count("child started") == 8)
        assert not eventually(lambda: gateway.log.count("child started") > 8, 1.2)
        check()


# Descriptors.


def open_files_max(pid: int) -> list[str]:
    [line] = [line for line in Path(f"/proc/{pid}/limits").read_text().splitlines() if "open files" in line]
    return line.split()[3:5]


def test_the_gateway_takes_all_the_descriptors_it_may_have_and_its_children_get_no_more_than_before(
    tmp_path: Path,
) -> None:
    @on_loop
    async def check() -> None:
        client = await Client(gateway).open()
        told = json.loads(await client.tool("limits", names=["NOFILE"]))
        assert told == {"NOFILE": [256, hard]}

    _, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    assert hard > 256
    plant = f"import resource; resource.setrlimit(resource.RLIMIT_NOFILE, (256, {hard}))"
    with serving(config({"stage": entry(**BRISK)}), tmp_path, program=program(plant)) as gateway:
        assert open_files_max(gateway.pid) == [str(hard)] * 2
        check()


@contextmanager
def without_descriptors(gateway: Gateway) -> Iterator[None]:
    """The gateway has as many as it may have, from one moment to the next."""
    before = resource.prlimit(gateway.pid, resource.RLIMIT_NOFILE)
    resource.prlimit(gateway.pid, resource.RLIMIT_NOFILE, (gateway.fds(), before[1]))
    try:
        yield
    finally:
        resource.prlimit(gateway.pid, resource.RLIMIT_NOFILE, before)


def cpu_seconds(pid: int) -> float:
    fields = Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def test_without_a_descriptor_for_a_connection_the_gateway_neither_spins_nor_fills_its_log(tmp_path: Path) -> None:
    @on_loop
    async def check() -> None:
        client = await Client(gateway).open()
        kept = Reply(0, {}, *await connection(gateway.port))
        await answered(kept, gateway)
        with without_descriptors(gateway):
            lines, cpu = len(gateway.log_lines), cpu_seconds(gateway.pid)
            for _ in range(10):
                refused = await asyncio.gather(*(is_cut_off(gateway) for _ in range(50)))
                assert sum(refused) >= 45  # One may have been closed just now.
            waiting = [await connection(gateway.port) for _ in range(50)]
            assert not eventually(lambda: cpu_seconds(gateway.pid) - cpu > 0.8, 2)
            assert len(gateway.log_lines) - lines < 10
        for _, writer in waiting:
            writer.close()
        await echoing(client)()

    with serving(config({"stage": entry(**BRISK)}), tmp_path) as gateway:
        check()


async def is_cut_off(gateway: Gateway) -> bool:
    """Whether a new connection is closed or refused, and not left waiting."""
    try:
        reply = await request(gateway.port, "GET", "/healthz", token=None)
    except (OSError, EOFError):
        return True
    reply.close()
    return reply.status == 503


def test_a_session_whose_child_died_waits_where_there_are_no_descriptors_for_another(tmp_path: Path) -> None:
    @on_loop
    async def check() -> None:
        client, kept = await Client(gateway).open(), KeptAlive(gateway)
        pid = int(await client.tool("pid"))
        ping = {"jsonrpc": "2.0", "id": 1, "method": "ping"}
        assert (await kept.post(client, ping))[1]["result"] == {}
        os.kill(pid, signal.SIGKILL)
        assert await soon(lambda: is_written(gateway, "session waits for another child"), 2)
        assert eventually(lambda: not gateway.children())
        with without_descriptors(gateway):
            assert await soon(lambda: is_written(gateway, "no room to start"), 3)
        assert await client.tool("count") == "1"

    content = config({"stage": entry(**BRISK)}, restarts={"backoff": 1})
    with serving(content, tmp_path) as gateway:
        check()
