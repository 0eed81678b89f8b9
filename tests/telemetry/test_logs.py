import io
import json
import logging
import re
import threading
from collections.abc import Callable, Iterator

import pytest

from app.telemetry import logs
from app.telemetry.writer import QUEUE_BYTES

Lines = Callable[[], list[str]]
NASTY = 'a\nb\r\x1b[31mred\x00\x85\u2028\u202e"=\\ \ud800天'


@pytest.fixture(autouse=True)
def as_before() -> Iterator[None]:
    """Logging belongs to the process: each test gives it back as it was."""
    names = (None, "app", "viaduct", "uvicorn.error", "uvicorn.access")
    before = [(logging.getLogger(name), logging.getLogger(name).__dict__.copy()) for name in names]
    handlers, secrets = logging.getLogger().handlers[:], logs._secrets.copy()
    yield
    for logger, state in before:
        logger.__dict__.update(state)
    logging.getLogger().handlers[:] = handlers
    logs._secrets.clear()
    logs._secrets.update(secrets)
    logging.getLogger().manager._clear_cache()  # type: ignore[attr-defined]


class Written(io.StringIO):
    """Asked for what is in it, it waits until all that was logged is."""

    def getvalue(self) -> str:
        for handler in logging.getLogger().handlers:
            handler.flush()
        return super().getvalue()


@pytest.fixture
def stream() -> io.StringIO:
    return Written()


@pytest.fixture(params=["text", "json"])
def configured(request: pytest.FixtureRequest, stream: io.StringIO) -> Lines:
    logs.configure("info", request.param, stream)
    return lambda: stream.getvalue().split("\n")


def fail(message: str) -> None:
    raise ValueError(message)


def test_a_record_is_one_line_whatever_is_in_it(configured: Lines) -> None:
    logging.getLogger("viaduct").warning("it %s happened", NASTY, extra={"field": NASTY, "deep": {NASTY: [NASTY]}})
    [line, rest] = configured()
    assert rest == ""
    assert not set("\r\x1b\x00\x85\u2028\u202e\ud800") & set(line)


def test_text_fields_cannot_be_forged(stream: io.StringIO) -> None:
    logs.configure("info", "text", stream)
    logging.getLogger("viaduct").info("an event", extra={"path": 'x\\" level=error', "empty": ""})
    assert stream.getvalue().endswith(r'an event path="x\\\" level=error" empty=""' + "\n")


def test_json_holds_the_event_and_its_fields(stream: io.StringIO) -> None:
    logs.configure("info", "json", stream)
    extra = {"server": "time", "code": 1, "level": "theirs", "ratio": float("nan"), "none": None, "raw": b"\xff"}
    logging.getLogger("viaduct").info("child exited", extra=extra)
    record = json.loads(stream.getvalue())
    assert record.pop("time").endswith("Z")
    assert record == {
        "level": "info",
        "event": "child exited",
        "server": "time",
        "code": 1,
        "level_": "theirs",
        "ratio": "nan",
        "none": None,
        "raw": "\\xff",
    }


def test_known_secrets_and_telling_fields_are_hidden_wherever_they_are(configured: Lines) -> None:
    logs.redact("canary-1234")
    try:
        fail("with canary-1234 inside")
    except ValueError:
        logging.getLogger("viaduct").exception(
            "got %s",
            "canary-1234",
            extra={
                "line": "x canary-1234 y",
                "deep": [{"canary-1234": "canary-1234"}],
                "authorization": "Bearer other-5678",
                "headers": {"X": 1, "Authorization": "other-5678", "Set-Cookie": "other-5678"},
                "raw": b"canary-1234",
                "long": "z" * (logs.FIELD_CAP - 5) + "canary-1234",
            },
        )
    text = "\n".join(configured())
    assert "canary" not in text
    assert "other-5678" not in text
    assert "ValueError" in text
    assert logs.HIDDEN in text


def test_a_secret_of_no_length_hides_nothing(configured: Lines) -> None:
    logs.redact("")
    logs.redact("a")
    logging.getLogger("viaduct").info("a banana")
    assert "a banana" in configured()[0]


def test_a_field_is_cut_and_says_so(configured: Lines) -> None:
    logging.getLogger("viaduct").info("big", extra={"one": "y" * 100_000, "many": ["y" * 1000] * 100})
    [line, _] = configured()
    assert len(line) < 3 * logs.FIELD_CAP
    assert "[91808 characters cut]" in line


def test_a_traceback_keeps_its_end(configured: Lines) -> None:
    try:
        fail("y" * 20_000 + " the end")
    except ValueError:
        logging.getLogger("viaduct").exception("failed")
    assert "the end" in configured()[0]


def test_libraries_are_heard_from_warnings_up_even_at_debug(stream: io.StringIO) -> None:
    logs.configure("debug", "text", stream)
    logging.getLogger("sse_starlette.sse").debug("chunk: payload")
    logging.getLogger("uvicorn.error").info("Started")
    logging.getLogger("uvicorn.access").error("GET /?token=x")
    logging.getLogger("viaduct.child").debug("ours")
    logging.getLogger("app.edge.wire").debug("ours too")
    logging.getLogger("uvicorn.error").warning("slow")
    events = [line.split(" ", 2)[2].strip() for line in stream.getvalue().splitlines()]
    assert events == ["ours", "ours too", "slow"]


def test_configured_again_every_record_is_still_written_once(stream: io.StringIO) -> None:
    logs.configure("info", "text", stream)
    logs.configure("warning", "json", stream)
    logging.getLogger("viaduct").info("unheard")
    logging.getLogger("viaduct").warning("once")
    assert [json.loads(line)["event"] for line in stream.getvalue().splitlines()] == ["once"]


def test_a_record_that_cannot_be_formatted_betrays_nothing(stream: io.StringIO) -> None:
    logging.getLogger().handlers.clear()
    logs.configure("info", "text", stream)
    logging.getLogger("viaduct").info("%d", "a payload")
    told = stream.getvalue()
    assert "could not be logged" in told
    assert "a payload" not in told


@pytest.mark.parametrize("kind", ["text", "json"])
def test_lines_that_nobody_took_are_counted_where_they_would_have_been(kind: logs.Format) -> None:
    class Stuck(Written):
        def write(self, text: str) -> int:
            stuck.set()
            free.wait(5)
            return super().write(text)

    free, stuck = threading.Event(), threading.Event()
    stream = Stuck()
    logs.configure("info", kind, stream, rate=1000)
    log = logging.getLogger("viaduct")
    log.info("first")
    assert stuck.wait(5)
    for _ in range(300):
        log.info("flood", extra={"pad": "x" * 8000})
    free.set()
    stream.getvalue()
    log.info("last")
    lines = stream.getvalue().splitlines()
    assert "first" in lines[0]
    assert "last" in lines[-1]
    found = re.search(r"log lines dropped.*count[\":= ]+(\d+)", lines[-2])
    assert found is not None
    assert int(found[1]) + len([line for line in lines if "flood" in line]) == 300
    assert sum(map(len, lines)) < 2 * QUEUE_BYTES


def test_without_a_stream_nothing_is_logged_and_nobody_fails(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("sys.stderr", None)
    logs.configure("info", "text")
    logging.getLogger("viaduct").info("unheard")
    logging.getLogger().handlers[-1].flush()
    assert capsys.readouterr().err == ""
