"""Logs on stderr: one line per record whatever its content, a constant event with fields beside it.

No token and no payload is in them: known secrets are replaced by value, fields of telling names by name.
Libraries are heard from warnings up, at any level of ours: some of them log what they carry. A record is made a line
at once, and a thread writes it: nobody waits for who reads our logs.
"""

import json
import logging
import math
import re
import sys
import time
import traceback
from collections.abc import Mapping
from typing import Literal, TextIO

from app.telemetry.sparing import Sparing
from app.telemetry.writer import Writer

Level = Literal["debug", "info", "warning", "error"]
Format = Literal["text", "json"]

FIELD_CAP = 8192
"""Characters kept of one field."""

RATE = 200
HIDDEN = "***"

_SHORTEST_SECRET = 4
_DEEPEST = 4
_TELLING_NAMES = frozenset(
    {"authorization", "cookie", "password", "secret", "token", "api_key", "apikey", "set_cookie"}
)
_OWN_ATTRIBUTES = frozenset(vars(logging.makeLogRecord({}))) | {"message", "asctime", "taskName", "color_message"}
_UNSAFE = re.compile(r"[\\\x00-\x1f\x7f-\x9f\u2028\u2029\u200e\u200f\u202a-\u202e\u2066-\u2069\ud800-\udfff]")
_NEEDS_QUOTES = re.compile(r'[\s"=]')

_secrets: set[str] = set()


def redact(secret: str) -> None:
    """From now on this value appears in no log, wherever it comes from."""
    if len(secret) >= _SHORTEST_SECRET:
        _secrets.add(secret)


def without_secrets(text: str) -> str:
    """As it may be shown."""
    for secret in sorted(_secrets, key=len, reverse=True):
        text = text.replace(secret, HIDDEN)
    return text


def configure(
    level: Level,
    format: Format,  # noqa: A002 - the option's name
    stream: TextIO | None = None,
    rate: int = RATE,
) -> None:
    """Send every record of this process to `stream` (stderr); may be called again to change level and format.

    Of one event, `rate` records pass in each second.
    """
    out = _Handler(stream or sys.stderr, _Json() if format == "json" else _Text())
    out.addFilter(Sparing(rate))
    root = logging.getLogger()
    for former in [handler for handler in root.handlers if isinstance(handler, _Handler)]:
        root.removeHandler(former)
        former.flush()
        former.close()
    root.addHandler(out)
    root.setLevel(logging.WARNING)
    set_level(level)
    logging.getLogger("uvicorn.error").setLevel(logging.WARNING)
    _silence(logging.getLogger("uvicorn.access"))


def set_level(level: Level) -> None:
    for ours in ("app", "viaduct"):
        logging.getLogger(ours).setLevel(level.upper())


def _silence(logger: logging.Logger) -> None:
    logger.handlers.clear()
    logger.propagate = False
    logger.disabled = True


class _Handler(logging.Handler):
    """Lines to a writer, and one about those that it had no room for."""

    def __init__(self, stream: TextIO | None, line: logging.Formatter) -> None:
        super().__init__()
        self.setFormatter(line)
        self._writer = Writer(stream, noted=self._dropped)

    def emit(self, record: logging.LogRecord) -> None:
        try:
            text = self.format(record)
        except Exception:  # noqa: BLE001 - who logs must not fail for it, and logging lets each handler see to that
            # The library would print the record's arguments, which nobody redacted.
            text = f"a record of {record.name} at {record.pathname}:{record.lineno} could not be logged"
        self._writer.put(f"{text}\n")

    def flush(self) -> None:
        """At exit it is logging that calls this."""
        self._writer.flush()

    def close(self) -> None:
        self._writer.close()
        super().close()

    def _dropped(self, count: int) -> str:
        fields = {"name": "viaduct", "levelno": logging.WARNING, "levelname": "WARNING", "count": count}
        return f"{self.format(logging.makeLogRecord({**fields, 'msg': 'log lines dropped: nobody took them'}))}\n"


class _Line(logging.Formatter):
    """What both formats share: a record as safe fields, in a constant order."""

    def fields(self, record: logging.LogRecord) -> dict[str, object]:
        fields: dict[str, object] = {
            "time": _timestamp(record),
            "level": record.levelname.lower(),
            "event": _plain(record.getMessage()),
        }
        for name, value in vars(record).items():
            if name not in _OWN_ATTRIBUTES:
                fields[name if name not in fields else f"{name}_"] = HIDDEN if _is_telling(name) else _plain(value)
        if record.exc_info and record.exc_info[0] is not None:
            fields["traceback"] = _plain("".join(traceback.format_exception(*record.exc_info)), keep_end=True)
        return fields


class _Json(_Line):
    def format(self, record: logging.LogRecord) -> str:
        return json.dumps(self.fields(record), ensure_ascii=True)


class _Text(_Line):
    def format(self, record: logging.LogRecord) -> str:
        fields = self.fields(record)
        head = f"{fields.pop('time')} {str(fields.pop('level')).upper():7} {printable(str(fields.pop('event')))}"
        return " ".join([head, *(f"{printable(name)}={_shown(value)}" for name, value in fields.items())])


def _timestamp(record: logging.LogRecord) -> str:
    return f"{time.strftime('%Y-%m-%dT%H:%M:%S', time.gmtime(record.created))}.{int(record.msecs):03d}Z"


def _is_telling(name: str) -> bool:
    return name.lower().replace("-", "_") in _TELLING_NAMES


def _plain(value: object, *, keep_end: bool = False, depth: int = 0) -> object:
    """The value as JSON has it, without secrets, capped: redacted first, or a cut could leave half a secret."""
    match value:
        case None | bool() | int():
            return value
        case float() if math.isfinite(value):
            return value
        case Mapping() if depth < _DEEPEST:
            return _capped({without_secrets(str(key)): _member(key, item, depth + 1) for key, item in value.items()})
        case list() | tuple() | set() | frozenset() if depth < _DEEPEST:
            return _capped([_plain(item, depth=depth + 1) for item in value])
        case bytes() | bytearray():
            return _plain(value.decode("utf-8", "backslashreplace"), keep_end=keep_end)
        case _:
            text = without_secrets(str(value))
            return text if len(text) <= FIELD_CAP else _cut(text, keep_end=keep_end)


def _member(key: object, value: object, depth: int) -> object:
    return HIDDEN if _is_telling(str(key)) else _plain(value, depth=depth)


def _capped(value: object) -> object:
    text = json.dumps(value, ensure_ascii=False)
    return value if len(text) <= FIELD_CAP else _cut(text, keep_end=False)


def _cut(text: str, *, keep_end: bool) -> str:
    kept = text[-FIELD_CAP:] if keep_end else text[:FIELD_CAP]
    mark = f"[{len(text) - FIELD_CAP} characters cut]"
    return f"{mark} {kept}" if keep_end else f"{kept} {mark}"


def _shown(value: object) -> str:
    text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
    escaped = printable(text)
    if isinstance(value, str) and (not text or _NEEDS_QUOTES.search(escaped)):
        return '"' + escaped.replace('"', '\\"') + '"'
    return escaped


def printable(text: str) -> str:
    """The text with whatever a terminal would obey, or a reader not see, written out."""
    return _UNSAFE.sub(lambda found: found.group().encode("unicode_escape").decode(), text)
