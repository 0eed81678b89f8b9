"""From a bare URL to a tool call, by the OAuth code of the Python SDK: 2.x, and 1.x where that is what is installed.

A job is {url, tool, arguments}; printed is {said, tokens, authorizations}. Whoever it sends to log in follows
where that leads, as a browser would.
"""

import json
import sys
import warnings
from typing import Any
from urllib.parse import parse_qs, urlsplit

import anyio
from mcp import ClientSession
from mcp.client.auth import OAuthClientProvider
from mcp.client.streamable_http import streamable_http_client
from mcp.shared._httpx_utils import create_mcp_http_client
from mcp.shared.auth import OAuthClientMetadata

try:
    import httpx2 as httpx
    from mcp.shared.auth import AuthorizationCodeResult
except ImportError:
    import httpx

    AuthorizationCodeResult = None

CALLBACK = "http://127.0.0.1:33418/callback"


class Memory:
    """What a client keeps between two runs, were there two."""

    def __init__(self) -> None:
        self.tokens: Any = None
        self.all: list[str] = []
        self.client: Any = None

    async def get_tokens(self) -> Any:
        return self.tokens

    async def set_tokens(self, tokens: Any) -> None:
        self.tokens = tokens
        self.all.append(tokens.access_token)

    async def get_client_info(self) -> Any:
        return self.client

    async def set_client_info(self, client_info: Any) -> None:
        self.client = client_info


class Browser:
    def __init__(self) -> None:
        self.authorizations: list[str] = []
        self._came_back: dict[str, list[str]] = {}

    async def go(self, url: str) -> None:
        self.authorizations.append(url)
        async with httpx.AsyncClient() as browser:
            for _ in range(10):
                answer = await browser.get(url)
                url = str(httpx.URL(url).join(answer.headers["location"]))
                if url.startswith(CALLBACK):
                    self._came_back = parse_qs(urlsplit(url).query)
                    assert "code" in self._came_back, url
                    return
        raise AssertionError(f"the login leads nowhere: {url}")

    async def result(self) -> Any:
        code, state, iss = (self._came_back.get(name, [None])[0] for name in ("code", "state", "iss"))
        if AuthorizationCodeResult is None:
            return code, state
        return AuthorizationCodeResult(code=code or "", state=state, iss=iss)


async def main(job: dict[str, Any]) -> None:
    memory, browser = Memory(), Browser()
    metadata = OAuthClientMetadata(redirect_uris=[CALLBACK], client_name="test", token_endpoint_auth_method="none")
    auth = OAuthClientProvider(job["url"], metadata, memory, browser.go, browser.result)
    async with (
        create_mcp_http_client(auth=auth) as http,
        streamable_http_client(job["url"], http_client=http) as (read, write, *_),
        ClientSession(read, write) as session,
    ):
        await session.initialize()
        result = await session.call_tool(job["tool"], job["arguments"])
    found = {
        "said": result.content[0].text,
        "tokens": memory.all,
        "authorizations": browser.authorizations,
    }
    print(json.dumps(found))


warnings.simplefilter("ignore")
anyio.run(main, json.load(sys.stdin))
