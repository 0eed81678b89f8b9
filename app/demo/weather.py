"""A weather server in Chinese: two tools over stdio, with made-up weather. Standard library only.

python -m app.demo.weather
"""

import json
import sys
from typing import Any

REVISIONS = ("2024-11-05", "2025-03-26", "2025-06-18", "2025-11-25")
PARSE_ERROR, INVALID_REQUEST, UNKNOWN_METHOD, BAD_PARAMS = -32700, -32600, -32601, -32602

Message = dict[str, Any]

_LOCATION = {"type": "string", "description": "城市名称"}
CURRENT = {
    "name": "com.example.weather/current",
    "title": "获取当前天气",
    "description": "获取指定城市的当前天气信息",
    "inputSchema": {
        "type": "object",
        "properties": {
            "location": _LOCATION,
            "units": {"type": "string", "enum": ["metric", "imperial"], "default": "metric"},
        },
        "required": ["location"],
    },
    "annotations": {"readOnlyHint": True},
}
FORECAST = {
    "name": "com.example.weather/forecast",
    "title": "天气预报",
    "description": "获取未来几天的天气预报",
    "inputSchema": {
        "type": "object",
        "properties": {"location": _LOCATION, "days": {"type": "integer", "minimum": 1, "maximum": 7, "default": 3}},
        "required": ["location"],
    },
    "annotations": {"readOnlyHint": True},
}


class Refused(Exception):
    """A request that gets an error for an answer."""

    def __init__(self, code: int, message: str) -> None:
        super().__init__(message)
        self.code = code


class BadArgument(Exception):
    """A tool that cannot do what it was asked: a result, so that the model reads why."""


def answer(line: bytes) -> Message | None:
    """The answer to one line; None where it wants none."""
    try:
        request = json.loads(line)
    except (ValueError, RecursionError):
        return _error(None, PARSE_ERROR, "解析错误")
    if not isinstance(request, dict) or not isinstance(request.get("method"), str):
        is_reply = isinstance(request, dict) and ("result" in request or "error" in request)
        return None if is_reply else _error(None, INVALID_REQUEST, "无效请求")
    if "id" not in request:
        return None
    try:
        return {
            "jsonrpc": "2.0",
            "id": request["id"],
            "result": _result(request["method"], _params(request)),
        }
    except Refused as refused:
        return _error(request["id"], refused.code, str(refused))


def _params(request: Message) -> Message:
    params = request.get("params", {})
    if not isinstance(params, dict):
        raise Refused(BAD_PARAMS, "params 必须是对象")
    return params


def _error(ident: object, code: int, message: str) -> Message:
    return {"jsonrpc": "2.0", "id": ident, "error": {"code": code, "message": message}}


def _result(method: str, params: Message) -> Message:
    match method:
        case "initialize":
            return _greeting(params)
        case "ping" | "shutdown":
            return {}
        case "tools/list":
            return {"tools": [CURRENT, FORECAST]}
        case "resources/list":
            return {"resources": []}
        case "tools/call":
            return _call(params)
        case _:
            raise Refused(UNKNOWN_METHOD, f"未知方法：{method}")


def _greeting(params: Message) -> Message:
    wanted = params.get("protocolVersion")
    return {
        "protocolVersion": wanted if wanted in REVISIONS else REVISIONS[-1],
        "capabilities": {"tools": {"listChanged": True}, "resources": {}},
        "serverInfo": {"name": "weather-server", "title": "天气服务器", "version": "1.0.0"},
    }


def _call(params: Message) -> Message:
    name, arguments = params.get("name"), params.get("arguments", {})
    tools = {CURRENT["name"]: _current, FORECAST["name"]: _forecast}
    if not isinstance(name, str) or name not in tools:
        raise Refused(BAD_PARAMS, f"未知工具：{name}")
    if not isinstance(arguments, dict):
        raise Refused(BAD_PARAMS, "参数必须是对象")
    try:
        return {"content": [{"type": "text", "text": tools[name](arguments)}]}
    except BadArgument as wrong:
        return {"content": [{"type": "text", "text": str(wrong)}], "isError": True}


def _current(arguments: Message) -> str:
    units = arguments.get("units", "metric")
    if units not in ("metric", "imperial"):
        raise BadArgument(f"未知单位：{units}，请使用 metric 或 imperial")
    temperature = "72°F" if units == "imperial" else "22°C"
    return f"{_location(arguments)}当前天气：晴天，温度{temperature}，湿度65%"


def _forecast(arguments: Message) -> str:
    days = arguments.get("days", 3)
    if not isinstance(days, int) or isinstance(days, bool) or not 1 <= days <= 7:
        raise BadArgument(f"天数必须是 1 到 7 的整数，而不是 {days}")
    lines = [f"第{day}天：晴天，温度20-25°C\n" for day in range(1, days + 1)]
    return f"{_location(arguments)}未来{days}天天气预报：\n{''.join(lines)}"


def _location(arguments: Message) -> str:
    location = arguments.get("location")
    if not isinstance(location, str) or not location:
        raise BadArgument("缺少城市名称（location）")
    return location


def main() -> None:
    sys.stderr.write("天气服务器已启动，等待连接...\n")
    sys.stderr.flush()
    for raw in sys.stdin.buffer:
        reply = answer(raw) if raw.strip() else None
        if reply is not None:
            sys.stdout.buffer.write(json.dumps(reply, ensure_ascii=False).encode("utf-8", "replace") + b"\n")
            sys.stdout.buffer.flush()


if __name__ == "__main__":
    main()
