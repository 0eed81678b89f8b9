"""The bundled server, over a real pipe as a client drives it."""

import json
import subprocess
import sys
from collections.abc import Iterator
from typing import Any

import pytest

CURRENT, FORECAST = "com.example.weather/current", "com.example.weather/forecast"

TWO_DAYS = "上海未来2天天气预报：\n第1天：晴天，温度20-25°C\n第2天：晴天，温度20-25°C\n"


class Server:
    def __init__(self, process: subprocess.Popen[bytes]) -> None:
        self.process = process

    def write(self, line: bytes) -> None:
        assert self.process.stdin is not None
        self.process.stdin.write(line + b"\n")
        self.process.stdin.flush()

    def read(self) -> Any:
        assert self.process.stdout is not None
        return json.loads(self.process.stdout.readline())

    def ask(self, method: str, params: object = None, **fields: object) -> Any:
        message = {"jsonrpc": "2.0", "id": 7, "method": method, **({} if params is None else {"params": params})}
        self.write(json.dumps({**message, **fields}).encode())
        return self.read()

    def call(self, name: str, **arguments: object) -> Any:
        return self.ask("tools/call", {"name": name, "arguments": arguments})["result"]


@pytest.fixture(scope="module")
def server() -> Iterator[Server]:
    command = [sys.executable, "-P", "-m", "app.demo.weather"]
    pipe = subprocess.PIPE
    with subprocess.Popen(command, stdin=pipe, stdout=pipe, stderr=subprocess.DEVNULL) as process:
        yield Server(process)
        assert process.stdin is not None
        process.stdin.close()
        assert process.wait(5) == 0


@pytest.mark.parametrize(
    ("wanted", "agreed"),
    [
        *((date, date) for date in ("2024-11-05", "2025-03-26", "2025-06-18", "2025-11-25")),
        ("2026-07-28", "2025-11-25"),
        ("1900-01-01", "2025-11-25"),
        ([], "2025-11-25"),
    ],
)
def test_the_revision_is_the_clients_where_it_is_known(server: Server, wanted: object, agreed: str) -> None:
    result = server.ask("initialize", {"protocolVersion": wanted, "capabilities": {}})["result"]
    assert result["protocolVersion"] == agreed
    assert result["serverInfo"]["name"] == "weather-server"
    assert "tools" in result["capabilities"]


def test_both_tools_are_listed_in_chinese(server: Server) -> None:
    tools = {tool["name"]: tool["title"] for tool in server.ask("tools/list")["result"]["tools"]}
    assert tools == {CURRENT: "获取当前天气", FORECAST: "天气预报"}


@pytest.mark.parametrize(
    ("name", "arguments", "text"),
    [
        (CURRENT, {"location": "北京"}, "北京当前天气：晴天，温度22°C，湿度65%"),
        (CURRENT, {"location": "旧金山", "units": "imperial"}, "旧金山当前天气：晴天，温度72°F，湿度65%"),
        (FORECAST, {"location": "上海", "days": 2}, TWO_DAYS),
    ],
)
def test_the_weather_is_told(server: Server, name: str, arguments: dict[str, object], text: str) -> None:
    assert server.call(name, **arguments) == {"content": [{"type": "text", "text": text}]}


def test_three_days_are_forecast_where_nothing_is_said(server: Server) -> None:
    assert server.call(FORECAST, location="上海")["content"][0]["text"].count("\n") == 4


@pytest.mark.parametrize(
    ("name", "arguments", "word"),
    [
        (FORECAST, {"location": "x", "days": 0}, "1 到 7"),
        (FORECAST, {"location": "x", "days": 8}, "1 到 7"),
        (FORECAST, {"location": "x", "days": True}, "1 到 7"),
        (FORECAST, {"location": "x", "days": "3"}, "1 到 7"),
        (CURRENT, {"location": "x", "units": "kelvin"}, "kelvin"),
        (CURRENT, {"location": "x", "units": []}, "metric"),
        (CURRENT, {}, "location"),
        (CURRENT, {"location": 5}, "location"),
    ],
)
def test_a_bad_argument_is_a_result_that_the_model_can_read(
    server: Server, name: str, arguments: dict[str, object], word: str
) -> None:
    result = server.call(name, **arguments)
    assert result["isError"] is True
    assert word in result["content"][0]["text"]


@pytest.mark.parametrize(
    ("method", "params", "code"),
    [
        ("tools/call", {"name": "com.example.weather/none", "arguments": {}}, -32602),
        ("tools/call", {"name": [], "arguments": {}}, -32602),
        ("tools/call", {"name": CURRENT, "arguments": "x"}, -32602),
        ("tools/call", [], -32602),
        ("tools/none", {}, -32601),
    ],
)
def test_what_cannot_be_asked_is_an_error(server: Server, method: str, params: object, code: int) -> None:
    reply = server.ask(method, params)
    assert (reply["id"], reply["error"]["code"]) == (7, code)


@pytest.mark.parametrize(
    ("line", "code"),
    [
        (b"{", -32700),
        (b"[" * 100_000, -32700),
        (b'{"id": 1, "method": "\xff"}', -32700),
        (b"5", -32600),
        (b"[]", -32600),
        (b'{"id": 1}', -32600),
    ],
)
def test_what_is_no_message_is_an_error_without_an_id(server: Server, line: bytes, code: int) -> None:
    server.write(line)
    reply = server.read()
    assert (reply["id"], reply["error"]["code"]) == (None, code)


def test_notifications_and_replies_are_not_answered(server: Server) -> None:
    for line in (
        b'{"jsonrpc":"2.0","method":"notifications/initialized"}',
        b'{"jsonrpc":"2.0","method":"tools/none"}',
        b'{"jsonrpc":"2.0","id":1,"result":{}}',
        b"  ",
    ):
        server.write(line)
    assert server.ask("ping", id="after") == {"jsonrpc": "2.0", "id": "after", "result": {}}


def test_half_a_character_does_not_end_it(server: Server) -> None:
    server.write(b'{"jsonrpc":"2.0","id":1,"method":"\\ud800"}')
    assert server.read()["error"]["code"] == -32601
