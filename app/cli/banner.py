"""What is printed once the gateway listens: where everything is, and lines to paste into common clients."""

import json
from collections.abc import Iterator
from importlib.metadata import version

from app.config import Config, choosing
from app.config.listening import Listen
from app.config.tree import Auth, Server


def banner(config: Config, listen: Listen, fresh_token: str | None) -> str:
    local = f"http://{listen}"
    base = config.viaduct.public_url or _reachable(listen)
    blocks = [
        [f"Viaduct {version('mcp-viaduct')} listens on {local}"],
        *(_server(base, name, server) for name, server in config.servers.items()),
    ]
    if len(config.servers) == 1:
        blocks.append([f"  The only server, so also at {base}/mcp and {base}/sse"])
    else:
        blocks.append(["  All of them as one", *_urls(base)])
    blocks += _groups(base, config)
    blocks += [_admission(config, fresh_token), _clients(config, base, fresh_token)]
    return "\n\n".join("\n".join(block) for block in blocks) + "\n"


def _reachable(listen: Listen) -> str:
    if not listen.is_any:
        return f"http://{listen}"
    return f"http://{'[::1]' if ':' in listen.host else '127.0.0.1'}:{listen.port}"


def _server(base: str, name: str, server: Server) -> list[str]:
    children = "one child for all sessions" if server.isolation == "shared" else "a child for each session"
    when = f"{server.warm} kept warm" if server.warm else "started when it is first needed"
    return [
        f"  {name}: {children}, {when}",
        *_urls(f"{base}/servers/{name}"),
    ]


def _groups(base: str, config: Config) -> Iterator[list[str]]:
    for name, group in config.viaduct.groups.items():
        members = choosing.members(group, config.servers)
        if members:
            yield [f"  {name}: {', '.join(members)} as one", *_urls(f"{base}/groups/{name}")]


def _urls(base: str) -> list[str]:
    return [f"    Streamable HTTP  {base}/mcp", f"    HTTP+SSE         {base}/sse"]


def _admission(config: Config, fresh_token: str | None) -> list[str]:
    if config.no_auth:
        return ["  No token is asked for: whoever reaches this address is let in."]
    if fresh_token is None:
        return _let_in(config.viaduct.auth)
    return [
        f"  Token for this run: {fresh_token}",
        "  It is shown only now; keep one of your own with --token or VIADUCT_TOKEN.",
    ]


def _let_in(auth: Auth) -> list[str]:
    lines = [f"  Tokens that are let in: {', '.join(token.name for token in auth.tokens)}"] if auth.tokens else []
    if auth.tokens_file is not None:
        lines.append(f"  Tokens that are let in: those of {auth.tokens_file}, as it changes")
    issuers = [*(jwt.issuer for jwt in auth.jwt), *([auth.introspection.endpoint] if auth.introspection else [])]
    return [*lines, *([f"  Access tokens that are let in: those of {', '.join(issuers)}"] if issuers else [])]


def _clients(config: Config, base: str, fresh_token: str | None) -> list[str]:
    is_single = len(config.servers) == 1
    name = next(iter(config.servers)) if is_single else "viaduct"
    url = f"{base}/servers/{name}/mcp" if is_single else f"{base}/mcp"
    auth = config.viaduct.auth
    signs_in = auth.has_issuers and not auth.tokens and auth.tokens_file is None
    bearer = None if config.no_auth or signs_in else f"Bearer {fresh_token or 'YOUR_TOKEN'}"
    headers = {"headers": {"Authorization": bearer}} if bearer else {}
    flag = f' --header "Authorization: {bearer}"' if bearer else ""
    vs_code = {"servers": {name: {"type": "http", "url": url, **headers}}}
    cursor = {"mcpServers": {name: {"url": url, **headers}}}
    return [
        "  Claude Code (a command):",
        f"    claude mcp add --transport http {name} {url}{flag}",
        "  VS Code (.vscode/mcp.json):",
        f"    {json.dumps(vs_code)}",
        "  Cursor (~/.cursor/mcp.json):",
        f"    {json.dumps(cursor)}",
    ]
