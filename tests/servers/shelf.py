"""A stdio MCP server of the handshake with lists of its own. Standard library only.

python -I -S shelf.py [JSON]

The JSON says what it has: `tools`, `prompts`, `resources` and `templates` are names; `page` how many are on one;
`instructions`; `about` what it says of each tool besides; `slow` for how many seconds each list takes; `after` what
`tools` are once `change` was called; `needs` names a capability without which a client does not see the tools in
`more`; `count` is how many further tools there are; who is `quiet` promises no news. `at` says by methods what it does
instead of answering: `hang`, `exit`, `exit until FILE` is there, `noise`, which is no message, `endless` pages;
`hang while FILE` and `refuse while FILE` is there; what is no text is its result.
Every tool says who was called with what; some are known by their names:

    change    announces other tools          ask       asks its client the question `arguments.method`
    links     links to `arguments.uri`       watch     says that `arguments.uri` was updated
    pid       of the process                 log       logs at `arguments.level`
    progress  reports some                   exit      ends the process without an answer
    mutter    writes an error that answers nothing
"""

import json
import os
import sys
import threading
import time

WITH = json.loads(sys.argv[1]) if len(sys.argv) > 1 else {}
NAME = WITH.get("name", "shelf")
NEVER = object()
lists = {
    "tools": [*WITH.get("tools", ()), *(f"number_{number}" for number in range(WITH.get("count", 0)))],
    "prompts": list(WITH.get("prompts", ())),
    "resources": list(WITH.get("resources", ())),
    "templates": list(WITH.get("templates", ())),
}
answers: dict[object, object] = {}
answered = threading.Condition()
lock = threading.Lock()
state = {"level": "", "subscribed": [], "questions": 0, "roots_changed": 0}


def send(message: dict[str, object]) -> None:
    with lock:
        sys.stdout.write(json.dumps({"jsonrpc": "2.0", **message}, ensure_ascii=False) + "\n")
        sys.stdout.flush()


def notify(method: str, params: object = None) -> None:
    send({"method": method, **({} if params is None else {"params": params})})


def ask(method: str, params: object) -> object:
    with answered:
        state["questions"] += 1
        ident = state["questions"]
        send({"id": ident, "method": method, "params": params})
        answered.wait_for(lambda: ident in answers, 20)
        return answers.pop(ident, "nobody answered")


def text(said: object) -> dict[str, object]:
    return {"content": [{"type": "text", "text": json.dumps(said, ensure_ascii=False)}]}


def tool(name: str) -> dict[str, object]:
    schema = {"type": "object", "properties": {"value": {"type": "string", "description": f"the value of {name}"}}}
    return {"name": name, "description": f"{name} of {NAME}{WITH.get('about', '')}", "inputSchema": schema}


def shown(kind: str, name: str) -> dict[str, object]:
    match kind:
        case "tools":
            return tool(name)
        case "prompts":
            return {"name": name, "description": f"{name} of {NAME}", "arguments": [{"name": "topic"}]}
        case "resources":
            return {"uri": name, "name": name}
        case _:
            return {"uriTemplate": name, "name": name}


def page(kind: str, key: str, params: dict[str, object]) -> dict[str, object]:
    time.sleep(WITH.get("slow", 0))
    names = lists[kind]
    size, begin = WITH.get("page", len(names) or 1), int(params.get("cursor", 0))
    more = {"nextCursor": str(begin + size)} if begin + size < len(names) else {}
    return {key: [shown(kind, name) for name in names[begin : begin + size]], **more}


def call(params: dict[str, object]) -> dict[str, object] | None:
    name, given = params["name"], params.get("arguments", {})
    if name not in lists["tools"]:
        return None
    match name:
        case "change":
            lists["tools"] = list(WITH.get("after", ["change"]))
            notify("notifications/tools/list_changed")
        case "ask":
            return text(ask(given["method"], given.get("params", {})))
        case "links":
            return {"content": [{"type": "resource_link", "uri": given["uri"], "name": "linked"}]}
        case "watch":
            notify("notifications/resources/updated", {"uri": given["uri"]})
        case "pid":
            return text(os.getpid())
        case "log":
            notify("notifications/message", {"level": given["level"], "data": f"from {NAME}"})
        case "progress":
            token = params.get("_meta", {}).get("progressToken")
            for step in (1, 2):
                notify("notifications/progress", {"progressToken": token, "progress": step, "total": 2})
        case "exit":
            os._exit(1)
        case "mutter":
            send({"id": None, "error": {"code": -32700, "message": "what?"}})
        case "state":
            return text(state)
        case "sleep":
            time.sleep(given["seconds"])
    return text({"server": NAME, "tool": name, "arguments": given})


def capabilities() -> dict[str, object]:
    offered: dict[str, object] = {"logging": {}, "tools": {} if WITH.get("quiet") else {"listChanged": True}}
    if lists["prompts"]:
        offered |= {"prompts": {}, "completions": {}}
    if lists["resources"] or lists["templates"]:
        offered["resources"] = {"subscribe": True}
    return offered


def initialized(params: dict[str, object]) -> dict[str, object]:
    if WITH.get("needs") in params["capabilities"]:
        lists["tools"] += WITH.get("more", [])
    said = {"instructions": WITH["instructions"]} if "instructions" in WITH else {}
    info = {"name": NAME, "version": "1"}
    return {"protocolVersion": params["protocolVersion"], "capabilities": capabilities(), "serverInfo": info, **said}


def answer(method: str, params: dict[str, object]) -> object:
    match method:
        case "initialize":
            return initialized(params)
        case "ping":
            return {}
        case "tools/list":
            return page("tools", "tools", params)
        case "prompts/list":
            return page("prompts", "prompts", params)
        case "resources/list":
            return page("resources", "resources", params)
        case "resources/templates/list":
            return page("templates", "resourceTemplates", params)
        case "tools/call":
            return call(params)
        case "prompts/get":
            said = {"type": "text", "text": f"{params['name']} of {NAME}"}
            return {"messages": [{"role": "user", "content": said}]}
        case "resources/read":
            return {"contents": [{"uri": params["uri"], "text": f"{params['uri']} of {NAME}"}]}
        case "resources/subscribe":
            state["subscribed"].append(params["uri"])
            return {}
        case "resources/unsubscribe":
            state["subscribed"].remove(params["uri"])
            return {}
        case "completion/complete":
            ref = params["ref"]
            return {"completion": {"values": [NAME, ref.get("name") or ref.get("uri")]}}
        case "logging/setLevel":
            state["level"] = params["level"]
            return {}
    return None


def astray(method: str, params: dict[str, object]) -> object:
    """The result; None where it is to be as it should be."""
    deed = WITH["at"][method]
    if not isinstance(deed, str):
        return deed
    if deed == "exit" or (deed.startswith("exit until ") and not os.path.exists(deed.removeprefix("exit until "))):
        os._exit(1)
    deed, _, flag = deed.partition(" while ")
    if flag and not os.path.exists(flag):
        return None
    if deed == "noise":
        sys.stdout.write("[this is no message\n")
        sys.stdout.flush()
    if deed == "endless":
        number = int(params.get("cursor", 0))
        return {"tools": [tool(f"endless_{number}")], "nextCursor": str(number + 1)}
    if deed == "refuse":
        return deed
    return NEVER if deed in ("hang", "noise") else None


def serve(message: dict[str, object]) -> None:
    method, params = message["method"], message.get("params") or {}
    found = astray(method, params) if method in WITH.get("at", ()) else None
    if found is NEVER:
        return
    if found == "refuse":
        send({"id": message["id"], "error": {"code": -32000, "message": "not now"}})
        return
    if found is None:
        found = answer(method, params)
    if found is None:
        send({"id": message["id"], "error": {"code": -32602, "message": f"unknown: {message['method']}"}})
    else:
        send({"id": message["id"], "result": found})


for line in sys.stdin:
    message = json.loads(line)
    if "method" not in message:
        with answered:
            answers[message["id"]] = message.get("result", message.get("error"))
            answered.notify_all()
    elif "id" not in message:
        state["roots_changed"] += message["method"] == "notifications/roots/list_changed"
    elif message["method"] == "tools/call":
        threading.Thread(target=serve, args=(message,), daemon=True).start()
    else:
        serve(message)
