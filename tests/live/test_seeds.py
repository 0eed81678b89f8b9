"""A beginner's weather server behind the gateway, and clients that speak as beginners' articles teach it."""

import json
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.parse import urljoin

import pytest

from tests.support.gateway import Gateway, config, entry, eventually, serving
from tests.support.http import Reply, on_loop, request

WEATHER = Path(__file__).parents[1] / "servers" / "seed_weather.py"


@pytest.fixture(scope="module")
def gateway(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Gateway]:
    weather = {"command": sys.executable, "args": [str(WEATHER)], "stopTimeout": 0.5}
    servers = {
        "weather": weather,
        "polite": entry("--mode", "knows_shutdown"),
        "asking": entry("--version", "2024-11-05"),
    }
    with serving(config(servers, sessions={"shutdownGrace": 0.4}), tmp_path_factory.mktemp("seeds")) as gateway:
        yield gateway


class Naive:
    """It sends a request, waits for the answer, and knows of HTTP no more than it must."""

    def __init__(self, gateway: Gateway, server: str = "weather") -> None:
        self._gateway = gateway
        self._path = f"/servers/{server}/mcp"
        self.session: str | None = None

    async def ask(self, ident: int, method: str, params: Any) -> Any:
        reply = await self.post({"jsonrpc": "2.0", "id": ident, "method": method, "params": params})
        assert reply.status == 200
        if method == "initialize":
            self.session = reply.headers["mcp-session-id"]
        return await reply.json()

    async def tell(self, method: str, params: Any = None) -> int:
        message = {"jsonrpc": "2.0", "method": method}
        return (await self.post(message if params is None else {**message, "params": params})).status

    async def post(self, message: Any) -> Reply:
        fields = {"Content-Type": "application/json"}
        if self.session:
            fields["Mcp-Session-Id"] = self.session
        body = json.dumps(message, ensure_ascii=False).encode()
        return await request(self._gateway.port, "POST", self._path, fields, body)

    async def is_unknown(self) -> bool:
        return (await self.post({"jsonrpc": "2.0", "id": 9, "method": "tools/list", "params": {}})).status == 404


def text(answer: Any) -> str:
    [content] = answer["result"]["content"]
    assert content["type"] == "text"
    return str(content["text"])


@on_loop
async def test_the_weather_server_behaves_as_its_client_expects(gateway: Gateway) -> None:
    client = Naive(gateway)
    greeted = await client.ask(1, "initialize", {})
    assert greeted["id"] == 1
    assert greeted["result"] == {
        "protocolVersion": "2025-06-18",
        "capabilities": {"tools": {"listChanged": True}, "resources": {}},
        "serverInfo": {"name": "weather-server", "version": "1.0.0"},
    }
    tools = (await client.ask(2, "tools/list", {}))["result"]["tools"]
    assert [(tool["name"], tool["title"]) for tool in tools] == [
        ("com.example.weather/current", "获取当前天气"),
        ("com.example.weather/forecast", "天气预报"),
    ]
    ident = int(time.time() * 1000)
    current = {"name": "com.example.weather/current", "arguments": {"location": "北京", "units": "metric"}}
    answer = await client.ask(ident, "tools/call", current)
    assert answer["id"] == ident
    assert text(answer) == "北京当前天气：晴天，温度22°C，湿度65%"
    current["arguments"] = {"location": "上海", "units": "imperial"}
    assert text(await client.ask(ident, "tools/call", current)) == "上海当前天气：晴天，温度72°F，湿度65%"
    forecast = {"name": "com.example.weather/forecast", "arguments": {"location": "东京", "days": 2}}
    assert text(await client.ask(ident + 1, "tools/call", forecast)) == (
        "东京未来2天天气预报：\n第1天：晴天，温度20-25°C\n第2天：晴天，温度20-25°C\n"
    )
    unknown = await client.ask(3, "tools/call", {"name": "invalid_tool", "arguments": {}})
    assert unknown == {"jsonrpc": "2.0", "id": 3, "error": {"code": -32603, "message": "未知工具：invalid_tool"}}
    nothing = await client.ask(4, "resources/list", {})
    assert nothing["error"] == {"code": -32601, "message": "Method resources/list not found"}


@on_loop
async def test_the_same_over_http_sse(gateway: Gateway) -> None:
    stream = await request(gateway.port, "GET", "/servers/weather/sse", {"Accept": "text/event-stream"})
    target = urljoin("/servers/weather/sse", (await stream.next_event()).data)

    async def ask(ident: int, method: str, params: Any) -> Any:
        body = json.dumps({"jsonrpc": "2.0", "id": ident, "method": method, "params": params}).encode()
        fields = {"Content-Type": "application/json"}
        assert (await request(gateway.port, "POST", target, fields, body)).status == 202
        answer = await stream.next_message()
        assert answer["id"] == ident
        return answer

    assert (await ask(1, "initialize", {}))["result"]["serverInfo"]["name"] == "weather-server"
    assert len((await ask(2, "tools/list", {}))["result"]["tools"]) == 2
    current = {"name": "com.example.weather/current", "arguments": {"location": "北京"}}
    assert text(await ask(3, "tools/call", current)) == "北京当前天气：晴天，温度22°C，湿度65%"
    assert (await ask(4, "tools/call", {"name": "x", "arguments": {}}))["error"]["message"] == "未知工具：x"
    stream.drop()


@on_loop
async def test_what_it_answers_to_notifications_reaches_nobody(gateway: Gateway) -> None:
    client = Naive(gateway)
    await client.ask(1, "initialize", {})
    fields = {"Mcp-Session-Id": str(client.session), "Accept": "text/event-stream"}
    stream = await request(gateway.port, "GET", "/servers/weather/mcp", fields)
    assert stream.status == 200
    for method in ("notifications/initialized", "initialized", "notifications/roots/list_changed"):
        assert await client.tell(method, {}) == 202
    for number in range(5):
        assert len((await client.ask(number, "tools/list", {}))["result"]["tools"]) == 2
    with pytest.raises(TimeoutError):
        await stream.next_message(0.3)


@on_loop
async def test_a_lifecycle_as_the_articles_describe_it_ends_where_it_should(gateway: Gateway) -> None:
    client, before = Naive(gateway), set(gateway.children())
    params = {
        "protocolVersion": "2024-11-05",
        "clientInfo": {"name": "claude-desktop", "version": "1.10.0"},
        "capabilities": {"sampling": {}, "roots": {}},
    }
    assert (await client.ask(1, "initialize", params))["result"]["protocolVersion"] == "2025-06-18"
    assert await client.tell("notifications/initialized", {}) == 202
    assert len((await client.ask(2, "tools/list", {}))["result"]["tools"]) == 2
    assert await client.ask(5, "shutdown", {}) == {"jsonrpc": "2.0", "id": 5, "result": {}}
    assert await client.tell("notifications/exit", {}) == 202
    assert await client.is_unknown()
    assert eventually(lambda: set(gateway.children()) <= before, 3)


@on_loop
async def test_after_shutdown_no_new_call_is_taken(gateway: Gateway) -> None:
    client = Naive(gateway)
    await client.ask(1, "initialize", {})
    assert (await client.ask(2, "shutdown", {}))["result"] == {}
    reply = await client.post({"jsonrpc": "2.0", "id": 3, "method": "tools/list", "params": {}})
    assert reply.status in (200, 400, 404)
    assert "error" in await reply.json()


@on_loop
async def test_a_client_that_says_shutdown_and_no_more_is_ended_after_a_grace(gateway: Gateway) -> None:
    client, before = Naive(gateway), set(gateway.children())
    await client.ask(1, "initialize", {})
    began = time.monotonic()
    await client.ask(2, "shutdown", {})
    assert set(gateway.children()) - before
    assert eventually(lambda: set(gateway.children()) <= before, 3)
    assert time.monotonic() - began > 0.3
    assert await client.is_unknown()


@on_loop
async def test_a_server_that_knows_shutdown_is_asked_and_hears_the_exit(gateway: Gateway) -> None:
    client = Naive(gateway, "polite")
    await client.ask(1, "initialize", {"protocolVersion": "2024-11-05", "capabilities": {}, "clientInfo": {}})
    assert (await client.ask(2, "shutdown", {}))["result"] == {"bye": True}
    assert await client.tell("notifications/exit") == 202
    assert await client.is_unknown()


@on_loop
async def test_initialized_without_its_prefix_reaches_the_server_as_what_it_means(gateway: Gateway) -> None:
    client = Naive(gateway, "asking")
    await client.ask(1, "initialize", {"protocolVersion": "2025-06-18"})
    assert await client.tell("initialized") == 202
    received = text(await client.ask(2, "tools/call", {"name": "received"}))
    methods = [json.loads(line)["method"] for line in json.loads(received)]
    assert methods == ["initialize", "notifications/initialized", "tools/call"]


@on_loop
async def test_its_own_error_to_a_ping_passes_and_means_nothing_else(gateway: Gateway) -> None:
    client = Naive(gateway)
    await client.ask(1, "initialize", {})
    assert (await client.ask(2, "ping", {}))["error"]["code"] == -32601
    assert len((await client.ask(3, "tools/list", {}))["result"]["tools"]) == 2


@on_loop
async def test_parameters_that_are_null_do_not_bring_it_down(gateway: Gateway) -> None:
    client = Naive(gateway)
    await client.ask(1, "initialize", {})
    answer = await client.ask(2, "tools/call", None)
    assert answer["id"] == 2
    assert len((await client.ask(3, "tools/list", {}))["result"]["tools"]) == 2
