"""The servers behind the gateway in the suite's runs, as commands, and what must be warm before the suite begins."""

import json
import sys
from collections.abc import Mapping
from pathlib import Path
from urllib.request import Request, urlopen

from tests.conformance.pairs import STATELESS

WARM_SECONDS = 30.0

_FIXTURES = "tests.conformance.fixtures"
_META = "io.modelcontextprotocol/"


def commands(mcp1: Path) -> dict[str, list[str]]:
    """By the name that a pair has for them; to be run in the folder of the checkout."""
    modern = [sys.executable, "-m", f"{_FIXTURES}.modern"]
    return {
        "legacy": [str(mcp1), "-m", f"{_FIXTURES}.legacy"],
        "modern": modern,
        "dual-era": [*modern, "--dual-era"],
    }


def warm(url: str) -> None:
    """Calls a tool as a client that declares no more than elicitation, and as one that declares nothing.

    A server of the handshake revisions is started for each set of capabilities, and on the SDK that alone takes longer
    than the 600 ms after which one check no longer listens to the first of them, and than what the answer to the second
    may take to have a status of its own. Where servers are one, only a call starts any.
    """
    _call(url, {"elicitation": {}})
    _call(url, {})


def _call(url: str, capabilities: Mapping[str, object]) -> None:
    meta = {_META + "protocolVersion": STATELESS, _META + "clientCapabilities": capabilities}
    params = {"name": "test_simple_text", "arguments": {}, "_meta": meta}
    headers = {
        "Content-Type": "application/json",
        "Accept": "application/json, text/event-stream",
        "MCP-Protocol-Version": STATELESS,
        "Mcp-Method": "tools/call",
        "Mcp-Name": "test_simple_text",
    }
    body = json.dumps({"jsonrpc": "2.0", "id": "warm", "method": "tools/call", "params": params}).encode()
    with urlopen(Request(url, body, headers), timeout=WARM_SECONDS) as answer:
        answer.read()
