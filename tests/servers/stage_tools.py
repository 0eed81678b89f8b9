"""The tools of the stage, the questions that they ask, and how all of it is said. Standard library only."""

import json
import os
import resource
import subprocess
import sys
import threading
import time

OPTIONS = dict(zip(sys.argv[1::2], sys.argv[2::2], strict=True))
MODE = OPTIONS.get("--mode", "")

received: list[str] = []
cancelled: list[object] = []
answers: dict[object, object] = {}
answered = threading.Condition()
state = {"count": 0, "calls": 0, "questions": 0, "visits": 0}
lock = threading.Lock()


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


annotated: list[str] = []


def tools() -> list[dict]:
    """Those that were annotated have a header for their nonce."""
    nonce = {"type": "object", "properties": {"nonce": {"type": "string", "x-mcp-header": "Nonce"}}}
    names = dict.fromkeys((*QUESTIONS, "echo", "sleep", "pid", "count", *annotated))
    return [{"name": name, "inputSchema": nonce if name in annotated else {"type": "object"}} for name in names]
