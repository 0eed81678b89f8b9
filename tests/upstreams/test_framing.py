"""However a child's bytes arrive, the same lines come out, and what is too long costs nothing (F08 to F12)."""

import tracemalloc
from collections.abc import Iterable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.upstreams.child import ChildLimits
from app.upstreams.framing import LineFramer
from tests.upstreams.conftest import Run
from tests.upstreams.heard import python, running

CAP = 12


def lines_of(pieces: Iterable[bytes], cap: int = CAP) -> tuple[list[bytes], int]:
    framer = LineFramer(cap)
    said = [line for piece in pieces for line in framer.feed(piece)]
    rest = framer.rest()
    assert said.count(b"") == framer.oversized
    return [line for line in (*said, rest) if line], framer.oversized


def expected_of(data: bytes) -> tuple[list[bytes], int]:
    *frames, rest = data.split(b"\n")
    lines = [frame.removesuffix(b"\r") for frame in frames if len(frame) <= CAP]
    if len(rest) <= CAP:
        lines.append(rest.strip())
    return [line for line in lines if line.strip()], sum(len(frame) > CAP for frame in (*frames, rest))


@given(
    st.lists(st.sampled_from([b"\n", b"\r\n", b"\r", b" ", b"{}", b"\xff", b"abcdef", b"0123456789ab"]), max_size=40),
    st.lists(st.integers(1, 30), max_size=60),
)
def test_any_cut_of_the_bytes_gives_the_same_lines(words: list[bytes], cuts: list[int]) -> None:
    data, pieces, at = b"".join(words), [], 0
    for cut in cuts:
        pieces.append(data[at : at + cut])
        at += cut
    pieces.append(data[at:])
    assert lines_of(pieces) == expected_of(data)


@given(st.lists(st.binary(max_size=30_000), max_size=6), st.integers(1, 9000))
def test_long_lines_survive_small_and_large_pieces(texts: list[bytes], size: int) -> None:
    frames = [b"<" + text.replace(b"\n", b".") + b">" for text in texts]
    data = b"".join(frame + b"\n" for frame in frames)
    assert lines_of([data[at : at + size] for at in range(0, len(data), size)], 40_000) == (frames, 0)


def test_an_endless_line_counts_once_and_as_soon_as_it_passes_the_cap() -> None:
    framer = LineFramer(CAP)
    assert [framer.feed(b"12345") for _ in range(4)] == [[], [], [b""], []]
    assert framer.feed(b"tail\nnext\n") == [b"next"]
    assert framer.oversized == 1


def test_a_line_of_just_the_cap_is_delivered_and_one_byte_more_is_not() -> None:
    assert lines_of([b"x" * CAP + b"\n", b"y" * (CAP + 1) + b"\n", b"z\n"]) == ([b"x" * CAP, b"z"], 1)


def test_an_endless_line_is_not_kept() -> None:
    piece = b"x" * 65536
    framer = LineFramer(1 << 20)
    tracemalloc.start()
    for _ in range(200):
        framer.feed(piece)
    held, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert (held < 10_000, peak < 2 << 20, framer.oversized) == (True, True, 1)


@pytest.mark.parametrize("size", [7, 65536])
def test_a_long_line_is_held_no_more_than_twice(size: int) -> None:
    length = 1 << 20
    framer = LineFramer(16 << 20)
    tracemalloc.start()
    lines = [line for at in range(0, length, size) for line in framer.feed(bytes(min(size, length - at)))]
    lines += framer.feed(b"\n")
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert [len(line) for line in lines] == [length]
    assert peak < 2.3 * length


def test_what_was_discarded_is_told_in_its_place() -> None:
    assert LineFramer(CAP).feed(b"a\n" + b"x" * 13 + b"\nb\n" + b"y" * 14) == [b"a", b"", b"b", b""]


# Real children.


def test_lines_of_awkward_sizes_arrive_whole(run: Run) -> None:
    sizes = [65535, 65536, 65537, 1 << 20, 3_900_000]

    async def work() -> None:
        code = f"import sys\nfor n in {sizes}: sys.stdout.write('x' * n + '\\n')\nsys.stdout.flush()\nsys.stdin.read()"
        async with running(*python(code)) as (_, heard):
            await heard.until(lambda heard: len(heard.lines) == len(sizes))
            assert [len(line) for line in heard.lines] == sizes

    run(work())


def test_one_byte_at_a_time_is_the_same_text(run: Run) -> None:
    async def work() -> None:
        code = "import os\nfor b in 'ą€🙂漢\\n'.encode(): os.write(1, bytes([b]))"
        async with running(*python(code)) as (_, heard):
            assert await heard.first() == "ą€🙂漢".encode()

    run(work())


def test_bytes_that_are_no_text_arrive_as_they_are_for_others_to_judge(run: Run) -> None:
    odd = [b"\xff\xfe", b"\xed\xa0\x80", b"\xef\xbb\xbf{}", b"a\0b", b"\x1b[1mstarting\x1b[0m", b"42"]

    async def work() -> None:
        said = b"\r\n".join([*odd, b"", b"  ", b"{}", b""])
        code = f"import os\nos.write(1, {said!r})"
        async with running(*python(code)) as (_, heard):
            await heard.until(lambda heard: len(heard.lines) == len(odd) + 1)
            assert heard.lines == [*odd, b"{}"]

    run(work())


def test_lines_over_the_cap_are_told_and_the_next_one_is_heard(run: Run) -> None:
    async def work() -> None:
        code = "import os\nfor n in (3, 200000, 4, 100001, 5): os.write(1, b'x' * n + b'\\n')\nos.read(0, 1)"
        async with running(*python(code), limits=ChildLimits(line_bytes=100_000)) as (_, heard):
            await heard.until(lambda heard: len(heard.order) == 5)
            assert heard.order == [b"xxx", None, b"xxxx", None, b"xxxxx"]

    run(work())


def test_an_endless_line_is_told_at_once_and_stops_nothing(run: Run) -> None:
    async def work() -> None:
        async with running("sh", "-c", "cat /dev/zero", limits=ChildLimits(line_bytes=100_000)) as (child, heard):
            await heard.until(lambda heard: heard.oversized == 1)
            child.kill()
            await child.wait()
            assert heard.order == [None, child.exit]

    run(work())
