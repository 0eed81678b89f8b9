"""Where we listen: `127.0.0.1:8080`, `[::1]:8080`, `localhost:0`."""

import ipaddress
import re
from dataclasses import dataclass

from app.config.errors import ConfigError

_LISTEN = re.compile(r"(?:\[([0-9A-Fa-f:.]+(?:%\w+)?)\]|([^\[\]:\s]+)):(\d{1,5})")


@dataclass(frozen=True, slots=True)
class Listen:
    host: str
    port: int

    @property
    def is_loopback(self) -> bool:
        if self.host.lower() == "localhost":
            return True
        address = _address(self.host)
        return address is not None and address.is_loopback

    @property
    def is_any(self) -> bool:
        """Every address of the machine."""
        address = _address(self.host)
        return address is not None and address.is_unspecified

    @property
    def bracketed(self) -> str:
        """The host as a URL has it."""
        return f"[{self.host}]" if ":" in self.host else self.host

    def __str__(self) -> str:
        return f"{self.bracketed}:{self.port}"


def parse(text: str, where: str) -> Listen:
    found = _LISTEN.fullmatch(text)
    if found is None:
        raise ConfigError(f'{where} must be host:port as in "127.0.0.1:8080" or "[::1]:8080"')
    return Listen(host(found[1] or found[2], where), port(found[3], where))


def host(text: str, where: str) -> str:
    bare = text.removeprefix("[").removesuffix("]")
    if not bare or re.search(r"[\s/\[\]]", bare) or (":" in bare and _address(bare) is None):
        raise ConfigError(f"{where} must be an address or a host name as in 127.0.0.1, ::1 or localhost")
    return bare


def port(text: str, where: str) -> int:
    if not re.fullmatch(r"[0-9]{1,5}", text) or int(text) > 65535:
        raise ConfigError(f"{where} must be a port from 0 to 65535")
    return int(text)


def _address(text: str) -> ipaddress.IPv4Address | ipaddress.IPv6Address | None:
    try:
        return ipaddress.ip_address(text)
    except ValueError:
        return None
