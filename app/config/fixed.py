"""What of a configuration cannot change while the gateway runs: it was used up at the start.

Another value of one of these is refused as a whole, so that what runs is always one file.
"""

from operator import attrgetter

from pydantic.alias_generators import to_camel

from app.config.errors import ConfigError
from app.config.tree import Viaduct

FIXED = (
    "listen",
    "store",
    "store_timeout",
    "audit",
    "log_format",
    "close_timeout",
    "starts",
    "restarts",
    *(
        f"limits.{name}"
        for name in (
            "body header_bytes header_count url_bytes header_timeout body_timeout send_timeout keep_alive_timeout "
            "answer_timeout linger_timeout linger_bytes pipelined connections children open_files_percent memory "
            "log_rate"
        ).split()
    ),
)
"""The address; files that are open; and bounds of connections, of the machine and of all servers together."""


def fixed_changes(former: Viaduct, following: Viaduct) -> list[str]:
    """The names of those that would be others."""
    changed = [path for path in FIXED if attrgetter(path)(former) != attrgetter(path)(following)]
    return ["viaduct." + ".".join(map(to_camel, path.split("."))) for path in changed]


def check_fixed(former: Viaduct, following: Viaduct) -> None:
    """
    Raises:
        ConfigError: something would have to change that cannot.
    """
    names = fixed_changes(former, following)
    if names:
        raise ConfigError(
            f"{' and '.join(names)} cannot change while the gateway runs; restart it, or change that back"
        )
