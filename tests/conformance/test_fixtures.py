"""The servers that the suite is run against speak the era that they claim, and no other."""

import json
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[2]
LIFE_SECONDS = 20.0
PREFIX = "io.modelcontextprotocol/"
META = {PREFIX + "protocolVersion": "2026-07-28", PREFIX + "clientCapabilities": {"elicitation": {}}}
GREETING = {"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {"name": "c", "version": "1"}}
ASKING = "test_input_required_result_request_state"

Json = dict[str, Any]


class Fixture:
    def __init__(self, process: subprocess.Popen[bytes]) -> None:
        self._process = process
        self._last = 0
        self.heard: list[Json] = []

    def submit(self, method: str, params: Json) -> int:
        assert self._process.stdin is not None
        self._last += 1
        line = json.dumps({"jsonrpc": "2.0", "id": self._last, "method": method, "params": params})
        self._process.stdin.write(line.encode() + b"\n")
        self._process.stdin.flush()
        return self._last

    def ask(self, method: str, **params: object) -> Json:
        """The answer; what is heard until then is kept."""
        ident = self.submit(method, {"_meta": META, **params})
        while (message := self._next()).get("id") != ident:
            self.heard.append(message)
        return message

    def hear(self) -> Json:
        return self.heard.pop(0) if self.heard else self._next()

    def _next(self) -> Json:
        assert self._process.stdout is not None
        message: Json = json.loads(self._process.stdout.readline())
        return message


@contextmanager
def fixture(*arguments: str) -> Iterator[Fixture]:
    command = [sys.executable, "-m", "tests.conformance.fixtures.modern", *arguments]
    with subprocess.Popen(command, cwd=ROOT, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
        alarm = threading.Timer(LIFE_SECONDS, process.kill)
        alarm.start()
        try:
            yield Fixture(process)
        finally:
            process.kill()
            alarm.cancel()


def test_the_modern_fixture_refuses_a_greeting_and_names_what_it_speaks() -> None:
    with fixture() as modern:
        refused = modern.ask("initialize", **GREETING)
        assert refused["error"]["code"] == -32022
        assert refused["error"]["data"] == {"supported": ["2026-07-28"], "requested": "2025-11-25"}
        assert modern.ask("server/discover")["result"]["supportedVersions"] == ["2026-07-28"]


def test_the_modern_fixture_refuses_a_request_that_does_not_say_what_its_client_can() -> None:
    with fixture() as modern:
        assert modern.ask("tools/list", _meta={})["error"]["code"] == -32602


def test_a_greeting_first_makes_the_dual_era_fixture_a_server_of_the_handshake() -> None:
    with fixture("--dual-era") as dual:
        assert dual.ask("initialize", **GREETING)["result"]["protocolVersion"] == "2025-11-25"
        assert dual.ask("server/discover")["error"]["code"] == -32601


def test_any_other_request_first_makes_the_dual_era_fixture_a_stateless_server() -> None:
    with fixture("--dual-era") as dual:
        assert dual.ask("server/discover")["result"]["resultType"] == "complete"
        assert dual.ask("initialize", **GREETING)["error"]["code"] == -32022


def test_a_subscription_hears_what_it_asked_for_under_its_own_id_and_nothing_else() -> None:
    with fixture() as modern:
        subscription = modern.submit(
            "subscriptions/listen", {"_meta": META, "notifications": {"toolsListChanged": True}}
        )
        modern.ask("tools/call", name="test_trigger_prompt_change")
        modern.ask("tools/call", name="test_trigger_tool_change")
        heard = [modern.hear(), modern.hear()]
        assert [message["method"] for message in heard] == [
            "notifications/subscriptions/acknowledged",
            "notifications/tools/list_changed",
        ]
        assert [message["params"]["_meta"] for message in heard] == [{PREFIX + "subscriptionId": subscription}] * 2


def test_a_state_that_was_changed_is_refused_and_the_same_one_goes_on() -> None:
    with fixture() as modern:
        asked = modern.ask("tools/call", name=ASKING)["result"]
        assert asked["resultType"] == "input_required"
        answer = {"inputResponses": {"confirm": {"action": "accept", "content": {"ok": True}}}}
        changed = modern.ask("tools/call", name=ASKING, requestState=asked["requestState"] + "x", **answer)
        assert changed["error"]["code"] == -32602
        done = modern.ask("tools/call", name=ASKING, requestState=asked["requestState"], **answer)
        assert done["result"]["content"] == [{"type": "text", "text": "state-ok, confirmed: True"}]
