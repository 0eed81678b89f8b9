"""A stdio MCP server that plays any part: well-behaved, or with one fault on purpose. Standard library only.

python -I -S stage.py [--mode FAULT] [--n NUMBER] [--version DATE] [--discover WAY] [--once FILE]

`--once` names a file that remembers, from one start to the next, that a thing happened.
`--discover` is how it takes `server/discover`: it may hang, exit, write garbage, or answer with an error of that code.
"""

import json
import os
import resource
import signal
import subprocess
import sys
import threading
import time

OPTIONS = dict(zip(sys.argv[1::2], sys.argv[2::2], strict=True))
MODE = OPTIONS.get("--mode", "")
N = float(OPTIONS.get("--n", "1"))
VERSION = OPTIONS.get("--version")
DISCOVER = OPTIONS.get("--discover", "-32601")

ONCE = OPTIONS.get("--once")

received: list[str] = []
cancelled: list[object] = []
answers: dict[object, object] = {}
answered = threading.Condition()
state = {"count": 0, "calls": 0, "questions": 0, "visits": 0}
lock = threading.Lock()


def has_been(file: str | None) -> bool:
    """Whether this is not the first time."""
    if file is None:
        return False
    try:
        os.close(os.open(file, os.O_CREAT | os.O_EXCL))
    except FileExistsError:
        return True
    return False


def write(data: bytes) -> None:
    with lock:
        view = memoryview(data)
        while view:
            view = view[os.write(1, view) :]


def send(message: object) -> None:
    data = json.dumps(message, ensure_ascii=False).encode() + b"\n"
    if MODE == "one_byte":
        with lock:
            for number in data:
                os.write(1, bytes([number]))
    else:
        write(data)


def result(ident: object, value: object) -> None:
    send({"jsonrpc": "2.0", "id": ident, "result": value})


def error(ident: object, code: int, message: str) -> None:
    send({"jsonrpc": "2.0", "id": ident, "error": {"code": code, "message": message}})


def notify(method: str, params: object = None) -> None:
    send({"jsonrpc": "2.0", "method": method, **({} if params is None else {"params": params})})


def text(ident: object, value: object) -> None:
    shown = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
    result(ident, {"content": [{"type": "text", "text": shown}]})


def ask(method: str, params: object) -> object:
    """Ask the client, and wait for what it says."""
    with answered:
        state["questions"] += 1
        ident = f"q{state['questions']}"
        send({"jsonrpc": "2.0", "id": ident, "method": method, "params": params})
        while ident not in answers:
            answered.wait(30)
        return answers.pop(ident)


def ask_many(ident: object, number: int, refused: int) -> None:
    """Ask all at once; tell the codes of the first so many errors."""
    for count in range(number):
        send({"jsonrpc": "2.0", "id": f"m{count}", "method": "roots/list"})
    with answered:
        while sum("error" in answers.get(f"m{count}", {}) for count in range(number)) < refused:
            answered.wait(30)
        errors = [answers[f"m{count}"]["error"] for count in range(number) if "error" in answers.get(f"m{count}", {})]
    text(ident, [error["code"] for error in errors])


def interview(ident: object, args: dict) -> None:
    """Asks round after round, all of one round at once, and tells what was said."""
    told: list[dict] = []
    for asked in args["rounds"]:
        said: dict = {}
        threads = [threading.Thread(target=answered_to, args=(what, said), daemon=True) for what in asked]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        told.append(said)
    text(ident, {"nonce": args.get("nonce"), "said": told})


def ask_then_sleep(ident: object, args: dict) -> None:
    ask(*QUESTIONS[f"ask_{args['what']}"])
    time.sleep(args["seconds"])  # a call that goes on for a while
    text(ident, "slept")


def url_first(ident: object) -> None:
    """The first call of all is sent to a page before."""
    if state["visits"]:
        text(ident, "visited")
        return
    state["visits"] = 1
    data = {"elicitations": [QUESTIONS["ask_url"][1]]}
    body = {"code": -32042, "message": "visit the page first", "data": data}
    send({"jsonrpc": "2.0", "id": ident, "error": body})


def answered_to(what: str, said: dict) -> None:
    said[what] = ask(*QUESTIONS[f"ask_{what}"])


QUESTIONS = {
    "ask_form": ("elicitation/create", {"message": "名字?", "requestedSchema": {"type": "object", "properties": {}}}),
    "ask_url": (
        "elicitation/create",
        {"mode": "url", "message": "log in", "url": "https://example.com", "elicitationId": "e1"},
    ),
    "ask_sample": ("sampling/createMessage", {"messages": [], "maxTokens": 5}),
    "ask_roots": ("roots/list", {}),
    "ask_ping": ("ping", {}),
}


def tool(ident: object, name: str, args: dict, meta: dict) -> None:
    state["calls"] += 1
    if name in QUESTIONS:
        threading.Thread(target=lambda: text(ident, ask(*QUESTIONS[name])), daemon=True).start()
    elif name == "ask_many":
        threading.Thread(target=ask_many, args=(ident, int(args["n"]), int(args["refused"])), daemon=True).start()
    elif name == "interview":
        threading.Thread(target=interview, args=(ident, args), daemon=True).start()
    elif name == "ask_then_sleep":
        threading.Thread(target=ask_then_sleep, args=(ident, args), daemon=True).start()
    elif name == "url_first":
        url_first(ident)
    elif name == "annotate":
        annotated.append(args["tool"])
        notify("notifications/tools/list_changed")
        text(ident, "annotated")
    elif name == "echo":
        text(ident, args.get("nonce", "") or "x" * int(args.get("size", 0)))
    elif name == "sleep":
        threading.Timer(args["seconds"], lambda: text(ident, args.get("nonce", "slept"))).start()
    elif name == "pid":
        text(ident, str(os.getpid()))
    elif name == "count":
        state["count"] += 1
        text(ident, str(state["count"]))
    elif name == "env":
        text(ident, dict(os.environ))
    elif name == "fds":
        text(ident, sorted(os.listdir("/proc/self/fd")))
    elif name == "received":
        text(ident, received)
    elif name == "cancelled":
        text(ident, cancelled)
    elif name == "progress":
        threading.Thread(target=progress, args=(ident, args, meta), daemon=True).start()
    elif name == "log":
        for number in range(int(args.get("n", 1))):
            notify(
                "notifications/message",
                {"level": args.get("level", "info"), "data": {"n": number, "tag": args.get("tag")}},
            )
        text(ident, "logged")
    elif name == "changed":
        text(ident, "soon")
        threading.Timer(0.05, lambda: notify(f"notifications/{args['what']}/list_changed")).start()
    elif name == "updated":
        text(ident, "soon")
        threading.Timer(0.05, lambda: notify("notifications/resources/updated", {"uri": args["uri"]})).start()
    elif name == "news":
        for number in range(int(args["n"])):
            notify("notifications/resources/updated", {"uri": f"test://{number}", "padding": "x" * int(args["size"])})
        text(ident, "told")
    elif name == "spawn":
        process = subprocess.Popen(args["argv"], start_new_session=bool(args.get("setsid")))
        text(ident, str(process.pid))
    elif name == "incr":
        with open(args["file"], "a") as file:
            file.write(args["nonce"] + "\n")
        text(ident, args["nonce"])
    elif name == "stderr":
        sys.stderr.write("e" * 99 + "\n" if "size" not in args else ("s" * 99 + "\n") * (int(args["size"]) // 100))
        sys.stderr.flush()
        text(ident, "said")
    elif name == "hog":
        hoarded.append(b"x" * int(args["size"]))
        text(ident, "hoarded")
    elif name == "spin":
        while True:
            pass
    elif name == "limits":
        text(ident, {name: list(resource.getrlimit(getattr(resource, f"RLIMIT_{name}"))) for name in args["names"]})
    elif name == "fork_bomb":
        text(ident, "boom")
        fork_bomb()
    elif name == "swallow":
        pass
    elif name == "die":
        if args.get("answer_first"):
            text(ident, "last words")
        os._exit(int(args.get("code", 1)))
    elif name == "raw":
        write(bytes.fromhex(args["hex"]).replace(b"IDENT", json.dumps(ident).encode()))
        if not args.get("answers"):
            text(ident, "written")
    else:
        error(ident, -32602, f"unknown tool {name}")


hoarded: list[bytes] = []


def fork_bomb() -> None:
    """Each makes more of its kind, as long as it may, and tries again when it may not."""
    while True:
        try:
            os.fork()
        except OSError:
            time.sleep(0.02)  # a bomb's own pace: the machine is shared


def progress(ident: object, args: dict, meta: dict) -> None:
    for number in range(int(args.get("n", 3))):
        notify("notifications/progress", {"progressToken": meta.get("progressToken"), "progress": number + 1})
        time.sleep(args.get("interval", 0.01))  # the server's own pace is what is tested
    text(ident, args.get("nonce", "done"))
    if args.get("after"):
        notify("notifications/progress", {"progressToken": meta.get("progressToken"), "progress": 99})


def page(items: list, params: dict, key: str, ident: object) -> None:
    half = len(items) // 2
    if params.get("cursor") == "page-2":
        result(ident, {key: items[half:]})
    else:
        result(ident, {key: items[:half], "nextCursor": "page-2"})


annotated: list[str] = []


def tools() -> list[dict]:
    """Those that were annotated have a header for their nonce."""
    nonce = {"type": "object", "properties": {"nonce": {"type": "string", "x-mcp-header": "Nonce"}}}
    names = dict.fromkeys((*QUESTIONS, "echo", "sleep", "pid", "count", *annotated))
    return [{"name": name, "inputSchema": nonce if name in annotated else {"type": "object"}} for name in names]


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
