"""A weather server as beginners' articles show it: it knows three methods, and answers whatever it is sent.

Its faults are kept on purpose: a notification is answered with an error of `"id": null`, `ping` and `shutdown` are
unknown, its version is the same whatever was asked for, and an unknown tool is an internal error.
"""

import json
import sys
from collections.abc import Callable
from typing import Any

CITY = {"type": "string", "description": "城市名称"}
UNITS = {"type": "string", "enum": ["metric", "imperial"], "default": "metric"}
DAYS = {"type": "integer", "minimum": 1, "maximum": 7, "default": 3}


def described(name: str, title: str, description: str, **properties: object) -> dict[str, object]:
    schema = {"type": "object", "properties": {"location": CITY, **properties}, "required": ["location"]}
    return {"name": name, "title": title, "description": description, "inputSchema": schema}


TOOLS = [
    described("com.example.weather/current", "获取当前天气", "获取指定城市的当前天气信息", units=UNITS),
    described("com.example.weather/forecast", "天气预报", "获取未来几天的天气预报", days=DAYS),
]


def current(location: str = "未知城市", units: str = "metric") -> str:
    temperature = "72°F" if units == "imperial" else "22°C"
    return f"{location}当前天气：晴天，温度{temperature}，湿度65%"


def forecast(location: str = "未知城市", days: int = 3) -> str:
    lines = [f"第{day}天：晴天，温度20-25°C\n" for day in range(1, days + 1)]
    return "".join([f"{location}未来{days}天天气预报：\n", *lines])


SPOKEN: dict[str, Callable[..., str]] = {TOOLS[0]["name"]: current, TOOLS[1]["name"]: forecast}  # type: ignore[dict-item]  # names are texts


def initialized(_params: Any) -> object:
    return {
        "protocolVersion": "2025-06-18",
        "capabilities": {"tools": {"listChanged": True}, "resources": {}},
        "serverInfo": {"name": "weather-server", "version": "1.0.0"},
    }


def listed(_params: Any) -> object:
    return {"tools": TOOLS}


def called(params: Any) -> object:
    name = params.get("name")
    if name not in SPOKEN:
        raise ValueError(f"未知工具：{name}")
    return {"content": [{"type": "text", "text": SPOKEN[name](**params.get("arguments", {}))}]}


METHODS = {"initialize": initialized, "tools/list": listed, "tools/call": called}


def answer(line: str) -> dict[str, object]:
    try:
        request = json.loads(line)
    except json.JSONDecodeError:
        return {"jsonrpc": "2.0", "id": None, "error": {"code": -32700, "message": "Parse error"}}
    head = {"jsonrpc": "2.0", "id": request.get("id")}
    method = request.get("method")
    if method not in METHODS:
        return {**head, "error": {"code": -32601, "message": f"Method {method} not found"}}
    try:
        return {**head, "result": METHODS[method](request.get("params", {}))}
    except Exception as wrong:  # noqa: BLE001 - what such a server does
        return {**head, "error": {"code": -32603, "message": str(wrong)}}


if __name__ == "__main__":
    print("🌤️ 天气服务器已启动，等待连接...", file=sys.stderr)
    for line in sys.stdin:
        print(json.dumps(answer(line.strip()), ensure_ascii=False), flush=True)
