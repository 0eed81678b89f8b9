"""A stdio MCP server of 2026-07-28 that plays any part. Standard library only.

python -I -S stateless_stage.py [--mode FAULT] [--n NUMBER] [--file PATH] [--discover WAY]

With `--mode dual` its first request fixes the era of the process, and with `--mode told` the content of the file does.
"""

import json
import os
import runpy
import signal
import sys
import threading
import time

HERE = os.path.dirname(os.path.abspath(__file__))
OPTIONS = dict(zip(sys.argv[1::2], sys.argv[2::2], strict=True))
MODE = OPTIONS.get("--mode", "")
N = float(OPTIONS.get("--n", "1"))
FILE = OPTIONS.get("--file")
VERSION = "2026-07-28"
PREFIX = "io.modelcontextprotocol/"

received: list[str] = []
cancelled: list[object] = []
subscriptions: dict[object, dict] = {}
annotated: list[str] = []
lock = threading.Lock()


def write(data: bytes) -> None:
    with lock:
        view = memoryview(data)
        while view:
            view = view[os.write(1, view) :]


def send(message: object) -> None:
    write(json.dumps(message, ensure_ascii=False).encode() + b"\n")


def result(ident: object, value: dict) -> None:
    send({"jsonrpc": "2.0", "id": ident, "result": {"resultType": "complete", **value}})


def error(ident: object, code: int, message: str, data: object = None) -> None:
    body = {"code": code, "message": message, **({} if data is None else {"data": data})}
    send({"jsonrpc": "2.0", "id": ident, "error": body})


def notify(method: str, params: dict) -> None:
    send({"jsonrpc": "2.0", "method": method, "params": params})


def text(ident: object, value: object) -> None:
    shown = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
    result(ident, {"content": [{"type": "text", "text": shown}]})


QUESTIONS = {
    "form": ("elicitation/create", {"message": "name?", "requestedSchema": {"type": "object", "properties": {}}}),
    "url": ("elicitation/create", {"mode": "url", "message": "log in", "url": "https://example.com"}),
    "sample": ("sampling/createMessage", {"messages": [], "maxTokens": 5}),
    "roots": ("roots/list", {}),
}


def interview(ident: object, params: dict) -> None:
    """Asks round after round; its state is all that it remembers."""
    args = params["arguments"]
    said = json.loads(params.get("requestState") or "[]")
    if "requestState" in params:
        said.append(params.get("inputResponses", {}))
    if len(said) == len(args["rounds"]):
        text(ident, {"nonce": args.get("nonce"), "said": said})
        return
    asked = {what: dict(zip(("method", "params"), QUESTIONS[what], strict=True)) for what in args["rounds"][len(said)]}
    body = {"resultType": "input_required", "requestState": json.dumps(said)}
    send({"jsonrpc": "2.0", "id": ident, "result": {**body, **({"inputRequests": asked} if asked else {})}})


def announce(method: str, filter_name: str, uri: str | None = None) -> None:
    for ident, wanted in list(subscriptions.items()):
        value = wanted.get(filter_name)
        if value is True or (uri is not None and uri in (value or ())):
            body = {"_meta": {PREFIX + "subscriptionId": ident}}
            notify(method, body if uri is None else {**body, "uri": uri})


def tool(ident: object, params: dict) -> None:
    name, args, meta = params["name"], params.get("arguments") or {}, params["_meta"]
    if name == "interview":
        interview(ident, params)
    elif name in ("echo", "plain"):
        text(ident, args.get("nonce", ""))
    elif name == "sleep":
        threading.Timer(args["seconds"], lambda: text(ident, args.get("nonce", "slept"))).start()
    elif name == "pid":
        text(ident, str(os.getpid()))
    elif name == "received":
        text(ident, received)
    elif name == "cancelled":
        text(ident, cancelled)
    elif name == "progress":
        threading.Thread(target=progress, args=(ident, args, meta), daemon=True).start()
    elif name == "log":
        log(args, meta)
        text(ident, "logged")
    elif name == "incr":
        with open(args["file"], "a") as file:
            file.write(args["nonce"] + "\n")
        text(ident, args["nonce"])
    elif name == "changed":
        text(ident, "soon")
        announce(f"notifications/{args['what']}/list_changed", f"{args['what']}ListChanged")
    elif name == "updated":
        text(ident, "soon")
        announce("notifications/resources/updated", "resourceSubscriptions", args["uri"])
    elif name == "annotate":
        annotated.append(args["tool"])
        announce("notifications/tools/list_changed", "toolsListChanged")
        text(ident, "annotated")
    elif name == "end_subscriptions":
        text(ident, "ended")
        for other in list(subscriptions):
            del subscriptions[other]
            notify("notifications/cancelled", {"requestId": other})
    elif name == "swallow":
        pass
    elif name == "die":
        os._exit(int(args.get("code", 1)))
    else:
        error(ident, -32602, f"unknown tool {name}")


def log(args: dict, meta: dict) -> None:
    if PREFIX + "logLevel" in meta:
        for _ in range(int(args.get("n", 1))):
            for level in ("debug", "info", "error"):
                notify("notifications/message", {"level": level, "data": args.get("tag", "")})


def progress(ident: object, args: dict, meta: dict) -> None:
    for number in range(int(args.get("n", 3))):
        notify("notifications/progress", {"progressToken": meta.get("progressToken"), "progress": number + 1})
        time.sleep(args.get("interval", 0.01))  # the server's own pace is what is tested
    text(ident, args.get("nonce", "done"))


def tools(cursor: str | None) -> dict:
    """`echo` is on the first page and `plain` on the last of three; each has the header when it was annotated so."""
    names = {None: ["echo", "interview"], "2": ["sleep", "pid"], "3": ["plain"]}[cursor]
    following = {None: "2", "2": "3"}.get(cursor)
    listed = []
    for name in names:
        nonce = {"type": "string", **({"x-mcp-header": "Nonce"} if name in annotated else {})}
        listed.append({"name": name, "inputSchema": {"type": "object", "properties": {"nonce": nonce}}})
    return {"tools": listed, **({"nextCursor": following} if following else {})}


CAPABILITIES = {
    "tools": {"listChanged": True},
    "resources": {"subscribe": True, "listChanged": True},
    "prompts": {"listChanged": True},
    "logging": {},
}


def request(ident: object, method: str, params: dict) -> None:
    if method == "initialize":
        unsupported(ident, params.get("protocolVersion"))
    elif PREFIX + "protocolVersion" not in (params.get("_meta") or {}):
        error(ident, -32602, "no protocol version")
    elif method == "server/discover":
        discovered(ident)
    elif method == "subscriptions/listen":
        subscriptions[ident] = params["notifications"]
        body = {"notifications": params["notifications"], "_meta": {PREFIX + "subscriptionId": ident}}
        notify("notifications/subscriptions/acknowledged", body)
    elif method == "tools/call":
        tool(ident, params)
    elif method == "tools/list" and MODE == "dies_listing" and not os.path.exists(FILE or ""):
        with open(FILE or "", "x"):
            os._exit(3)
    elif method == "tools/list":
        result(ident, {**tools(params.get("cursor")), "ttlMs": 60000, "cacheScope": "public"})
    elif method == "resources/read":
        result(ident, {"contents": [{"uri": params["uri"], "text": "content"}], "ttlMs": 0, "cacheScope": "private"})
    elif method == "future/echo":
        result(ident, {"params": params})
    else:
        error(ident, -32601, f"unknown method {method}")


def unsupported(ident: object, requested: object) -> None:
    if MODE == "exits_on_initialize":
        os._exit(5)
    if MODE == "hangs_on_initialize":
        return
    error(ident, -32022, "unsupported", {"supported": [VERSION], "requested": requested})


def discovered(ident: object) -> None:
    info = {PREFIX + "serverInfo": {"name": "stateless stage", "version": "1"}}
    result(ident, {"supportedVersions": [VERSION], "capabilities": CAPABILITIES, "ttlMs": 5, "_meta": info})


def handle(line: str) -> None:
    received.append(line)
    message = json.loads(line)
    params = message.get("params") or {}
    if "method" not in message:
        return
    if "id" in message:
        request(message["id"], message["method"], params)
    elif message["method"] == "notifications/cancelled":
        cancelled.append(params.get("requestId"))
        subscriptions.pop(params.get("requestId"), None)


def first_line() -> str:
    return sys.stdin.buffer.readline().decode()


def other_era(line: str | None = None) -> None:
    """From here on this is a server of the handshake."""
    sys.argv = ["stage.py", "--discover", OPTIONS.get("--discover", "-32601")]
    stage = runpy.run_path(os.path.join(HERE, "stage.py"), run_name="stage")
    if line is not None:
        stage["handle"](line)
    stage["main"]()


def main() -> None:
    if MODE == "slow_start":
        time.sleep(N)  # what a first `npx` does
    if MODE == "told":
        with open(FILE or "") as file:
            era = file.read().strip()
        if era == "legacy":
            other_era()
    if MODE == "dual":
        line = first_line()
        if json.loads(line).get("method") == "initialize":
            other_era(line)
        handle(line)
    for raw in sys.stdin.buffer:
        handle(raw.decode())
    while MODE == "ignores_eof":
        signal.pause()
    os._exit(0)


if __name__ == "__main__":
    main()
