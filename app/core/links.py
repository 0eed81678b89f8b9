from collections.abc import Callable

from msgspec import Raw


def relinked(result: Raw, public: Callable[[str], str]) -> Raw:
    return result
