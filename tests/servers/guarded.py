"""A server with something of every kind, some of it dangerous; what it hears goes line by line into a file.

guarded.py HEARD [modern]
"""

import json
import os
import sys

HEARD = sys.argv[1]
IS_MODERN = "modern" in sys.argv
VERSION = "2026-07-28"
TOOLS = [
    {"name": "look", "annotations": {"readOnlyHint": True}},
    {"name": "edit", "annotations": {"destructiveHint": False}},
    {"name": "delete_all", "annotations": {"readOnlyHint": False}},
    {"name": "plain"},
]
LISTS = {
    "tools/list": {"tools": [{**tool, "inputSchema": {"type": "object"}} for tool in TOOLS]},
    "prompts/list": {"prompts": [{"name": "open"}, {"name": "secret"}]},
    "resources/list": {"resources": [{"uri": f"memo://{name}", "name": name} for name in ("open", "secret")]},
    "resources/templates/list": {
        "resourceTemplates": [{"uriTemplate": f"memo://{name}/{{x}}", "name": name} for name in ("open", "secret")]
    },
}
CAPABILITIES = {"tools": {}, "prompts": {}, "resources": {"subscribe": True}, "completions": {}}


def send(message: object) -> None:
    sys.stdout.write(json.dumps(message) + "\n")
    sys.stdout.flush()


def answer(ident: object, method: str, params: dict) -> None:
    if method in LISTS:
        result = {**LISTS[method], "nextCursor": "more"} if not params.get("cursor") else LISTS[method]
    elif method == "initialize":
        version = params["protocolVersion"]
        result = {"protocolVersion": version, "capabilities": CAPABILITIES, "serverInfo": {"name": "guarded"}}
    elif method == "server/discover" and IS_MODERN:
        result = {"supportedVersions": [VERSION], "capabilities": CAPABILITIES}
    elif method == "server/discover":
        send({"jsonrpc": "2.0", "id": ident, "error": {"code": -32601, "message": "what is that?"}})
        return
    elif method == "tools/call" and params.get("name") == "look" and "updates" in params.get("arguments", {}):
        for uri in params["arguments"]["updates"]:
            send({"jsonrpc": "2.0", "method": "notifications/resources/updated", "params": {"uri": uri}})
        result = {"content": [{"type": "text", "text": "looked"}]}
    elif method == "tools/call" and params.get("arguments", {}).get("env"):
        result = {"content": [{"type": "text", "text": json.dumps(dict(os.environ))}]}
    else:
        result = {"content": [{"type": "text", "text": "served"}], "messages": [], "contents": [], "completion": {}}
    send({"jsonrpc": "2.0", "id": ident, "result": result})


for line in sys.stdin:
    with open(HEARD, "a") as file:
        file.write(line)
    message = json.loads(line)
    if "id" in message and "method" in message:
        asked = message.get("params") or {}
        if message["method"] == "tools/call" and asked.get("arguments", {}).get("hangs"):
            continue
        answer(message["id"], message["method"], asked)
