"""A stdio MCP server that plays any part: well-behaved, or with one fault on purpose. Standard library only.

python -I -S stage.py [--mode FAULT] [--n NUMBER] [--version DATE] [--discover WAY] [--once FILE]

`--once` names a file that remembers, from one start to the next, that a thing happened.
`--discover` is how it takes `server/discover`: it may hang, exit, write garbage, or answer with an error of that code.
Its tools are in the file beside it, which `-I` keeps from being found by itself.
"""

import json
import os
import signal
import subprocess
import sys
import threading
import time

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))

from stage_tools import (
    MODE,
    OPTIONS,
    answered,
    answers,
    cancelled,
    error,
    notify,
    received,
    result,
    send,
    state,
    text,
    tool,
    tools,
    write,
)

N = float(OPTIONS.get("--n", "1"))
VERSION = OPTIONS.get("--version")
DISCOVER = OPTIONS.get("--discover", "-32601")
ONCE = OPTIONS.get("--once")


def has_been(file: str | None) -> bool:
    """Whether this is not the first time."""
    if file is None:
        return False
    try:
        os.close(os.open(file, os.O_CREAT | os.O_EXCL))
    except FileExistsError:
        return True
    return False


def page(items: list, params: dict, key: str, ident: object) -> None:
    half = len(items) // 2
    if params.get("cursor") == "page-2":
        result(ident, {key: items[half:]})
    else:
        result(ident, {key: items[:half], "nextCursor": "page-2"})


RESOURCES = [{"uri": f"test://{n}", "name": f"r{n}"} for n in range(4)]
TEMPLATES = [{"uriTemplate": f"test://{n}/{{x}}", "name": f"t{n}"} for n in range(4)]
PROMPTS = [{"name": f"p{n}"} for n in range(4)]
CAPABILITIES = {
    "tools": {"listChanged": True},
    "resources": {"subscribe": True, "listChanged": True},
    "prompts": {"listChanged": True},
    "completions": {},
    "logging": {},
    "experimental": {"future": {"n": 1.0}},
}


def request(ident: object, method: str, params: dict) -> None:
    if method == "initialize":
        greet(ident, params)
    elif method == "tools/call":
        if MODE == "crash_on_call" and state["calls"] + 1 >= N:
            os._exit(3)
        tool(ident, params["name"], params.get("arguments") or {}, params.get("_meta") or {})
        if MODE == "answers_twice":
            text(ident, "twice")
    elif (method, MODE) in (("tools/list", "never_lists"), ("logging/setLevel", "never_levels")):
        pass
    elif method == "tools/list":
        page(tools(), params, "tools", ident)
    elif method == "resources/list":
        page(RESOURCES, params, "resources", ident)
    elif method == "resources/templates/list":
        page(TEMPLATES, params, "resourceTemplates", ident)
    elif method == "prompts/list":
        page(PROMPTS, params, "prompts", ident)
    elif method == "resources/read":
        result(ident, {"contents": [{"uri": params["uri"], "text": "content"}]})
    elif method == "prompts/get":
        result(ident, {"messages": [{"role": "user", "content": {"type": "text", "text": params["name"]}}]})
    elif method == "completion/complete":
        result(ident, {"completion": {"values": ["a", "b"], "hasMore": False}})
    elif method in ("ping", "logging/setLevel", "resources/subscribe", "resources/unsubscribe"):
        result(ident, {})
    elif method == "shutdown" and MODE == "knows_shutdown":
        result(ident, {"bye": True})
    elif method == "server/discover":
        discover(ident)
    elif method == "future/echo":
        write(
            b'{"jsonrpc":"2.0","id":%b,"result":{"z":1.0,"a":1e5,"big":12345678901234567890123,"params":%b}}\n'
            % (json.dumps(ident).encode(), json.dumps(params, ensure_ascii=False).encode())
        )
    else:
        error(ident, -32601, f"unknown method {method}")


def discover(ident: object) -> None:
    if DISCOVER == "exit":
        os._exit(6)
    if DISCOVER == "garbage":
        write(b"what is server/discover?\n")
    elif DISCOVER != "hang":
        error(ident, int(DISCOVER), "what is server/discover?")


def greet(ident: object, params: dict) -> None:
    if MODE == "refuses_later" and has_been(ONCE):
        error(ident, -32602, "not again")
        return
    version = "2025-06-18" if MODE == "changes" and has_been(ONCE) else VERSION
    if MODE == "refuses":
        error(ident, -32602, "unsupported protocol version")
        return
    if MODE == "prompts_operator":
        sys.stderr.write("Ok to proceed? (y) ")
        sys.stderr.flush()
    if MODE in ("never_greets", "prompts_operator"):
        return
    send(
        {
            "jsonrpc": "2.0",
            "id": ident,
            "result": {
                "protocolVersion": version or params.get("protocolVersion", "2025-11-25"),
                "capabilities": CAPABILITIES,
                "serverInfo": {"name": "stage", "version": "1", "extra": "ünïcode"},
                "instructions": "be kind",
            },
        }
    )
    after_greeting()


def after_greeting() -> None:
    if MODE == "endless_line":
        threading.Thread(target=lambda: [write(b"y" * 65536) for _ in range(int(N))], daemon=True).start()
    elif MODE == "never_reads":
        signal.pause()
    elif MODE == "closes_stdout":
        os.close(1)
    elif MODE == "flood":
        threading.Thread(
            target=lambda: [
                notify("notifications/message", {"level": "info", "data": "f" * 200}) for _ in range(int(N))
            ],
            daemon=True,
        ).start()
    elif MODE == "asks":
        asked = b'{"jsonrpc":"2.0","id":"q","method":"roots/list"}\n' * 1000
        threading.Thread(target=lambda: [write(asked) for _ in range(int(N))], daemon=True).start()
    elif MODE == "garbage":
        write('🌤️ banner\n\nnpm warn deprecated\r\n\x1b[31mred\x1b[0m\n42\n{"level":"info"}\n\ufeff{}\n'.encode())
        write(
            b"\xff\xfe\n" + b'{"jsonrpc":"2.0","method":"\xed\xa0\x80"}\n' + b'{"jsonrpc":"2.0","method":"\\ud800"}\n'
        )
    elif MODE == "too_much_garbage":
        write(b"nonsense\n" * int(N))
    elif MODE == "batch":
        write(
            b'[{"jsonrpc":"2.0","method":"notifications/tools/list_changed"},{"jsonrpc":"2.0","method":"notifications/x"}]\n'
        )


FOLDED = {"_meta": "_meta", "progresstoken": "progressToken"}


def folded(pairs: list) -> dict:
    """Names in any case, and of several that are alike the first: what some servers read."""
    return {FOLDED.get(name.casefold(), name): value for name, value in reversed(pairs)}


def handle(line: str) -> None:
    received.append(line)
    message = json.loads(line, object_pairs_hook=folded if MODE == "folds_names" else None)
    if "method" not in message:
        with answered:
            answers[message["id"]] = message.get("result", {"error": message.get("error")})
            answered.notify_all()
        return
    params = message.get("params") or {}
    if "id" in message:
        request(message["id"], message["method"], params)
    elif message["method"] == "notifications/cancelled":
        cancelled.append(params.get("requestId"))
    elif MODE == "answers_notifications":
        error(None, -32601, f"Method {message['method']} not found")
    elif MODE == "crash_on_initialized" and message["method"] == "notifications/initialized" and not has_been(ONCE):
        os._exit(4)


def main() -> None:
    if MODE == "fails_later" and has_been(ONCE):
        os._exit(5)
    if MODE == "exit0":
        os._exit(0)
    if MODE == "exit_early":
        sys.stderr.write("cannot find my settings\n")
        sys.stderr.flush()
        os._exit(7)
    if MODE == "slow_start":
        time.sleep(N)  # what a first `npx` does
    if MODE in ("ignores_term", "ignores_all"):
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
    for raw in sys.stdin.buffer:
        handle(raw.decode())
    while MODE in ("ignores_eof", "ignores_term", "ignores_all"):
        signal.pause()
    if MODE == "leaves_grandchild":
        subprocess.Popen(["sleep", "60"])
    sys.stdout.flush()
    os._exit(0)


if __name__ == "__main__":
    main()
