"""What is printed once the gateway listens: where everything is, and lines to paste into common clients."""

import json
from importlib.metadata import version

from app.cli.launch import Launch

_BEARER = "Bearer"


def banner(launch: Launch, host: str, port: int) -> str:
    base = launch.config.viaduct.public_url or _local(host, port)
    secret = launch.secret or "TOKEN"
    lines = [f"Viaduct {version('mcp-viaduct')} listens on {_local(host, port)}", ""]
    for name, server in launch.config.servers.items():
        state = "one child for all sessions" if server.isolation == "shared" else "a child for each session"
        lines += [f"  {name}  ({state}, started when it is first needed)"]
        lines += [f"    Streamable HTTP  {base}/servers/{name}/mcp", f"    HTTP+SSE         {base}/servers/{name}/sse"]
    if len(launch.config.servers) == 1:
        lines += ["", f"  The only server, so also at {base}/mcp and {base}/sse"]
    if launch.is_fresh:
        lines += ["", f"  Token for this run: {secret}", "  (give your own with --token or VIADUCT_TOKEN)"]
    if launch.config.no_auth:
        lines += ["", "  No token is needed: everybody who reaches this address is let in."]
    return "\n".join([*lines, "", *_clients(launch, base, secret if not launch.config.no_auth else None)])


def _local(host: str, port: int) -> str:
    return f"http://[{host}]:{port}" if ":" in host else f"http://{host}:{port}"


def _clients(launch: Launch, base: str, secret: str | None) -> list[str]:
    name = next(iter(launch.config.servers))
    url = f"{base}/servers/{name}/mcp"
    bearer = f"{_BEARER} {secret if launch.is_fresh or secret is None else '<your token>'}"
    headers: dict[str, object] = {} if secret is None else {"headers": {"Authorization": bearer}}
    flag = "" if secret is None else f' --header "Authorization: {bearer}"'
    vs_code = {"servers": {name: {"type": "http", "url": url, **headers}}}
    cursor = {"mcpServers": {name: {"url": url, **headers}}}
    return [
        "  Claude Code   " + f"claude mcp add --transport http {name} {url}{flag}",
        "  VS Code       .vscode/mcp.json   " + json.dumps(vs_code),
        "  Cursor        ~/.cursor/mcp.json " + json.dumps(cursor),
        "",
    ]
