"""The config file of a running gateway, written anew."""

import copy
import json
from pathlib import Path
from typing import Any

from tests.support.gateway import TOKEN, Gateway
from tests.support.http import soon
from tests.support.metrics import number


def path_of(gateway: Gateway) -> Path:
    return gateway.folder / f"viaduct-{gateway.mark}.json"


def text_of(gateway: Gateway, content: dict[str, Any]) -> str:
    """With what children of this gateway are known by."""
    marked = copy.deepcopy(content)
    for server in marked["mcpServers"].values():
        server["env"] = {**server.get("env", {}), "TEST_GATEWAY": gateway.mark}
    return json.dumps(marked)


def put(path: Path, text: str) -> None:
    """Another file in its place, as editors do it."""
    path.with_suffix(".new").write_text(text)
    path.with_suffix(".new").rename(path)


async def reloads(gateway: Gateway, result: str = "applied") -> float:
    return await number(gateway, "viaduct_reloads_total", result=result)


async def rewritten(gateway: Gateway, text: str, result: str = "applied") -> None:
    """When the gateway has read that, and taken or refused it. The metrics must stay readable."""
    before = await reloads(gateway, result)
    put(path_of(gateway), text)
    await has_reloaded(gateway, before, result)


async def has_reloaded(gateway: Gateway, before: float, result: str = "applied") -> None:
    async def is_done() -> bool:
        return await reloads(gateway, result) > before

    assert await soon(is_done, 5), gateway.log


async def reloaded(gateway: Gateway, content: dict[str, Any]) -> None:
    await rewritten(gateway, text_of(gateway, content))


__all__ = ["TOKEN", "has_reloaded", "path_of", "put", "reloaded", "reloads", "rewritten", "text_of"]
