"""When a token ends, as people write it."""

import re
from datetime import datetime

_RFC3339 = re.compile(r"\d{4}-\d\d-\d\d[Tt ]\d\d:\d\d:\d\d(\.\d+)?([Zz]|[+-]\d\d:\d\d)")


def unix_seconds(text: str) -> float:
    """The moment that an RFC 3339 time with an offset names.

    Raises:
        ValueError: it is not one; the message says what it must be.
    """
    if not _RFC3339.fullmatch(text):
        raise ValueError("must be a time with an offset as in 2027-01-01T00:00:00Z")
    try:
        return datetime.fromisoformat(text.upper()).timestamp()
    except ValueError as error:
        raise ValueError("must be a date and time that exist, as in 2027-01-01T00:00:00Z") from error
