"""Heads that a connection has seen before: what was judged once need not be read again.

A client repeats its head to the byte, but for the digits of its Content-Length. A head is remembered when a request
with it was read by the parser, passed every check and was served; from then on, of a request that begins with the same
bytes only the body is new. Anything else is the parser's.
"""

from app.edge.asgi import Again

_HEAD_MAX = 4096
_KNOWN_MAX = 16
_DIGITS_MAX = 9
_LENGTHS = (b"ontent-Length: ", b"ontent-length: ")
_LENGTH = len(_LENGTHS[0])


class KnownHeads:
    """Of one connection; `head_max` bounds what is remembered of it."""

    __slots__ = ("_again", "_head_max")

    def __init__(self, head_max: int) -> None:
        self._again: dict[bytes, Again] = {}
        self._head_max = min(_HEAD_MAX, head_max - _DIGITS_MAX)

    def __bool__(self) -> bool:
        return bool(self._again)

    def find(self, data: bytes) -> tuple[Again, bytes, int] | None:
        """Who takes this request, what is there of its body, and how long that will be; None where its head is new."""
        key, body, size = _taken_apart(data)
        again = self._again.get(key)
        return None if again is None else (again, body, size)

    def add(self, data: bytes, again: Again) -> None:
        """`data` is what the parser was given since a request began, until one had been served."""
        key, body, size = _taken_apart(data)
        is_whole = len(body) == size and _has_length_line(key)
        if not is_whole or len(data) - size > self._head_max:
            return
        if len(self._again) >= _KNOWN_MAX:
            self._again.clear()
        self._again[key] = again


def _taken_apart(data: bytes) -> tuple[bytes, bytes, int]:
    """The head without the digits of its length, what is there of the body, and the length; no head where it has none.

    Behind a body that is longer than its length there are other requests.
    """
    end = data.find(b"\r\n\r\n")
    at = data.find(_LENGTHS[0], 0, end)
    if at < 0:
        at = data.find(_LENGTHS[1], 0, end)
    if at < 0 or end < 0:
        return b"", b"", 0
    at += _LENGTH
    stop = data.find(b"\r\n", at)
    digits = data[at:stop]
    if len(digits) > _DIGITS_MAX or not digits.isdigit():
        return b"", b"", 0
    return data[:at] + data[stop:end], data[end + 4 :], int(digits)


def _has_length_line(key: bytes) -> bool:
    """Whether what was taken for the length is a header of its own, and not a part of another."""
    at = max(map(key.find, _LENGTHS))
    return key[at - 3 : at] in (b"\r\nC", b"\r\nc")
