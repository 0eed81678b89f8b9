"""Nonsense, by the thousand and by seed: every input gets an answer in JSON or an end, and harms nobody."""

import asyncio
import json
import random
from collections import Counter

import pytest

from app.edge.wire import WireLimits
from tests.edge.wire_server import PATIENCE, Served, serving

SEED = 20260728
COUNT = 1000
"""On each of the two loops."""
AT_ONCE = 100
LIMITS = WireLimits(
    header_bytes=2000,
    header_count=12,
    url_bytes=200,
    body_bytes=500,
    header_seconds=0.15,
    body_seconds=0.15,
    answer_seconds=0.2,
    linger_seconds=0.5,
)
SEEDS = [
    b"GET /x HTTP/1.1\r\nHost: a\r\n\r\n",
    b"POST /x?q=1 HTTP/1.1\r\nHost: a\r\nContent-Type: application/json\r\nContent-Length: 7\r\n\r\n{\"a\":1}",
    b"POST /x HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n3;e=f\r\nabc\r\n2\r\nde\r\n0\r\nX-T: 1\r\n\r\n",
    b"POST /x HTTP/1.1\r\nHost: a\r\nConnection: Upgrade\r\nUpgrade: h2c\r\nContent-Length: 2\r\n\r\nhi",
    b"POST /early HTTP/1.1\r\nHost: a\r\nExpect: 100-continue\r\nContent-Length: 2\r\n\r\nhi",
    b"POST /x HTTP/1.1\r\nHost: a\r\nContent-Length: 501\r\n\r\n" + b"x" * 501,
    b"GET /a HTTP/1.1\r\nHost: a\r\n\r\nGET /b HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n",
]  # fmt: skip
TOKENS = [
    *(b"\r\n", b"\n", b"\r", b"\0", b" ", b"\t", b":", b";", b",", b"\xff", b"-1", b"*", b"ffffffff\r\n", b"0\r\n\r\n"),
    *(b"HTTP/1.1", b"HTTP/2.0", b"CONNECT ", b"Host: b\r\n", b"Content-Length: 3\r\n", b"Content-Length: 99999\r\n"),
    *(b"Transfer-Encoding: chunked\r\n", b"Expect: 100-continue\r\n", b"Connection: close\r\n", b"Expect: x\r\n"),
    *(b"Connection: Upgrade\r\nUpgrade: x\r\n", b"a" * 300, b"X: " + b"y" * 3000 + b"\r\n", b"X: 1\r\n" * 15),
]  # fmt: skip


def mutated(chance: random.Random) -> bytes:
    raw = bytearray(chance.choice(SEEDS))
    for _ in range(chance.randint(1, 3)):
        at = chance.randrange(len(raw) + 1)
        match chance.randrange(6):
            case 0:
                raw[at:at] = chance.choice(TOKENS)
            case 1:
                raw[at : at + chance.randint(1, 8)] = b""
            case 2:
                raw[at : at + 1] = bytes([chance.randrange(256)])
            case 3:
                raw = raw[:at]
            case 4:
                raw[at:at] = raw[chance.randrange(len(raw) + 1) :]
            case _:
                raw[at : at + 1] = chance.choice(TOKENS)
    return bytes(raw)


async def ask(port: int, raw: bytes, cut: int) -> bytes:
    """All that one connection is answered until it ends, which it must."""
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    try:
        async with asyncio.timeout(PATIENCE):
            writer.write(raw[:cut])
            await asyncio.sleep(0)
            writer.write(raw[cut:])
            return await reader.read()
    except ConnectionError:
        return b""
    finally:
        writer.close()


def statuses(answered: bytes) -> list[int]:
    found = []
    while answered:
        head, answered = answered.split(b"\r\n\r\n", 1)
        status_line, *lines = head.decode("ascii").split("\r\n")
        found.append(int(status_line.removeprefix("HTTP/1.1 ").split(" ")[0]))
        if found[-1] == 100:
            continue
        fields = dict(line.lower().split(": ", 1) for line in lines)
        assert fields["content-type"] == "application/json"
        length = int(fields["content-length"])
        json.loads(answered[:length])
        answered = answered[length:]
    return found


async def ask_all(port: int, seed: int) -> Counter[int]:
    chance = random.Random(seed)
    told: Counter[int] = Counter()
    for _ in range(COUNT // AT_ONCE):
        inputs = [mutated(chance) for _ in range(AT_ONCE)]
        answered = await asyncio.gather(*(ask(port, raw, chance.randrange(len(raw) + 1)) for raw in inputs))
        for raw, answer in zip(inputs, answered, strict=True):
            try:
                told.update(statuses(answer) or [0])
            except (ValueError, KeyError, AssertionError) as error:
                raise AssertionError((seed, raw, answer)) from error
    return told


@pytest.mark.parametrize(("loop", "seed"), [("uvloop", SEED), ("asyncio", SEED + 1)])
def test_nonsense_is_answered_or_ended_and_harms_nobody(loop: str, seed: int) -> None:
    with serving(LIMITS, loop, timeout_keep_alive=0.15) as served:
        told = asyncio.run(ask_all(served.port, seed))
        assert is_alive(served)
        assert served.complaints() == []
    assert {200, 400, 408, 413, 431} <= set(told), told
    assert set(told) <= {0, 100, 200, 400, 408, 413, 414, 417, 431, 505}, told


def is_alive(served: Served) -> bool:
    with served.connect() as client:
        client.send(SEEDS[0])
        response = client.read()
    return response is not None and response.status == 200
