"""Writing to who may not read."""

import io
import os
import threading
import time
from collections.abc import Iterator
from typing import TextIO

import pytest

from app.telemetry.writer import Writer

Pipe = tuple[int, TextIO]


@pytest.fixture
def pipe() -> Iterator[Pipe]:
    read, write = os.pipe()
    with os.fdopen(write, "w") as stream:
        yield read, stream
    os.close(read)


def said(read: int, size: int) -> bytes:
    text = b""
    while len(text) < size:
        text += os.read(read, size - len(text))
    return text


def test_who_writes_to_a_full_pipe_goes_on_and_is_heard_later_in_order(pipe: Pipe) -> None:
    read, stream = pipe
    writer = Writer(stream)
    lines = [f"{number:999d}\n" for number in range(500)]
    began = time.monotonic()
    for line in lines:
        writer.put(line)
    assert time.monotonic() - began < 1
    assert writer.flush(0.05) is False
    assert said(read, 500_000).decode() == "".join(lines)
    assert writer.flush(5)


def test_a_pipe_that_somebody_else_made_non_blocking_loses_nothing(pipe: Pipe) -> None:
    read, stream = pipe
    os.set_blocking(stream.fileno(), False)
    writer = Writer(stream)
    text = "天" * 100_000
    writer.put(text)
    assert said(read, 300_000).decode() == text


def test_a_line_that_is_longer_than_the_queue_goes_alone(pipe: Pipe) -> None:
    read, stream = pipe
    writer = Writer(stream, bytes_max=10)
    writer.put("x" * 1000)
    assert said(read, 1000) == b"x" * 1000


def test_a_reader_that_is_gone_is_told_and_the_next_line_is_tried() -> None:
    read, write = os.pipe()
    os.close(read)
    told: list[OSError] = []
    with os.fdopen(write, "w") as stream:
        writer = Writer(stream, failed=told.append)
        for _ in range(2):
            writer.put("x")
            assert writer.flush(5)
    assert [type(wrong) for wrong in told] == [BrokenPipeError, BrokenPipeError]


def test_closed_it_writes_no_more_and_its_thread_ends() -> None:
    stream = io.StringIO()
    writer = Writer(stream)
    writer.put("heard")
    assert writer.flush(5)
    before = threading.active_count()
    writer.close()
    writer.put("unheard")
    assert writer.flush(0)
    assert writer._thread is not None
    writer._thread.join(5)
    assert (stream.getvalue(), threading.active_count()) == ("heard", before - 1)
