"""What a client does with a server: each takes its session and an argument, and returns what it found as it came."""

from collections.abc import Awaitable, Callable
from contextlib import AbstractAsyncContextManager
from typing import Any

import anyio
from mcp import types
from pydantic import BaseModel
from session import BOUND_SECONDS, Json, Session, wire

Open = Callable[[], AbstractAsyncContextManager[Session]]
"""Opens a further session, of a silent client."""


async def greeting(session: Session, _: Json, __: Open) -> Json:
    return session.sdk.greeting(session.client)


async def lists(session: Session, _: Json, __: Open) -> Json:
    client = session.client
    offers = session.sdk.greeting(client)["capabilities"]
    found: Json = {"tools": [tool.name for tool in (await client.list_tools()).tools]}
    if "resources" in offers:
        templates = wire(await client.list_resource_templates())["resourceTemplates"]
        found["resources"] = [str(resource.uri) for resource in (await client.list_resources()).resources]
        found["templates"] = [template["uriTemplate"] for template in templates]
    if "prompts" in offers:
        found["prompts"] = [prompt.name for prompt in (await client.list_prompts()).prompts]
    return found


async def call(session: Session, tool: Json, _: Open) -> Json:
    return await _or_error(session, session.client.call_tool(tool["name"], tool.get("arguments", {})))


async def tools(session: Session, _: Json, __: Open) -> list[Json]:
    """All there are, on however many pages."""
    found: list[Json] = []
    cursor: str | None = None
    while True:
        page = wire(await session.sdk.tools(session.client, cursor))
        found += [{"name": tool["name"], "inputSchema": tool["inputSchema"]} for tool in page["tools"]]
        cursor = page.get("nextCursor")
        if not cursor:
            return found


async def attempt(session: Session, tool: Json, _: Open) -> Json:
    """Calls a tool, with whatever comes of it; questions are answered by the methods in `answers`.

    Its server may have to start first, beside others.
    """
    session.answers |= tool["answers"]
    with anyio.fail_after(3 * BOUND_SECONDS):
        return await call(session, tool, _)


async def changes(session: Session, _: Json, __: Open) -> int:
    """How often it was told that the tools are others now."""
    return sum(told["method"] == "notifications/tools/list_changed" for told in session.told)


async def settle(session: Session, argument: Json, _: Open) -> Json:
    """Calls a tool until it says what is to come about by itself."""
    with anyio.fail_after(BOUND_SECONDS):
        while True:
            result = await session.call(argument["tool"])
            if argument["text"] in result["content"][0]["text"]:
                return result


async def read(session: Session, resource: Json, _: Open) -> Json:
    return await _or_error(session, session.client.read_resource(session.sdk.uri(resource["uri"])))


async def prompt(session: Session, wanted: Json, _: Open) -> Json:
    return await _or_error(session, session.client.get_prompt(wanted["name"], wanted.get("arguments")))


async def complete(session: Session, partial: Json, _: Open) -> Json:
    references: dict[str, type[BaseModel]] = {
        "ref/prompt": types.PromptReference,
        "ref/resource": types.ResourceTemplateReference,
    }
    reference = references[partial["ref"]["type"]].model_validate(partial["ref"])
    given = partial.get("context", {}).get("arguments")
    return await _or_error(session, session.client.complete(reference, partial["argument"], given))


async def ask(session: Session, argument: Json, _: Open) -> Json:
    """Calls a tool that asks back, and answers by the methods in `answers`."""
    since = len(session.asked)
    session.answers |= argument["answers"]
    result = await session.call(argument["tool"])
    return {"asked": session.asked[since:], "result": result}


async def roots(session: Session, argument: Json, _: Open) -> Json:
    """Changes the roots, says so, and waits until the server has asked for them and logged that it has them."""
    since = len(session.told)
    session.answers["roots/list"] = argument
    await session.client.send_roots_list_changed()
    logged = f"Roots updated: {len(argument['roots'])} root(s)"
    return await session.hears(_is_logged(logged), since)


async def hear(session: Session, argument: Json, _: Open) -> Json:
    """Waits for a log message that begins like this."""
    return await session.hears(_is_logged(argument["data"]))


async def subscribe(session: Session, argument: Json, _: Open) -> Json:
    """Subscribes to a resource, or to lists, calls a tool that changes it, and waits until told."""
    uris = [argument["uri"]] if "uri" in argument else []
    async with session.listening({"resources": uris, "lists": argument.get("lists", [])}) as following:
        result = await session.call(argument["tool"])
        return {"updated": await following(), "result": result}


async def log(session: Session, argument: Json, _: Open) -> Json:
    """Calls a tool that logs, with messages from a level on; what it logged came with the call."""
    since = len(session.told)
    result = await session.call_at(argument["level"], argument["tool"])
    logged = [told["params"] for told in session.told[since:] if told["method"] == "notifications/message"]
    return {"result": result, "logged": logged}


async def logging(session: Session, argument: Json, _: Open) -> list[Json]:
    """Subscribing is logged by the server at level info: below the first level, above the second."""
    since, uri = len(session.told), session.sdk.uri(argument["uri"])
    await session.client.set_logging_level("error")
    await session.client.subscribe_resource(uri)
    await session.client.set_logging_level("info")
    await session.client.unsubscribe_resource(uri)
    await session.hears(lambda told: told["method"] == "notifications/message", since)
    return session.told[since:]


async def progress(session: Session, tool: Json, _: Open) -> Json:
    seen: list[Json] = []

    async def report(progress: float, total: float | None, _: str | None) -> None:
        seen.append({"progress": progress, "total": total})

    return {"result": await session.call(tool, report), "progress": seen}


async def cancel(session: Session, argument: Json, open_session: Open) -> Json:
    """Cancels a call at its second report, and then looks whether more of it comes while the next call runs."""
    seen: list[Json] = []
    abandoned = anyio.CancelScope()

    async def report(progress: float, total: float | None, _: str | None) -> None:
        seen.append({"progress": progress, "total": total})
        if len(seen) == 2:
            abandoned.cancel()

    with abandoned:
        await session.call(argument["tool"], report)
    since = len(session.told)
    token = await _token_of_the_latest_progress(session)
    await session.sdk.abandon(session.client, token)
    after = await progress(session, argument["next"], open_session)
    return {
        "rejected": abandoned.cancelled_caught,
        "progress": seen,
        "next": after,
        "complaints": [told for told in session.told[since:] if (told["params"] or {}).get("progressToken") == token],
    }


async def many(_: Session, argument: Json, open_session: Open) -> list[list[str]]:
    """Many sessions of silent clients at once, each with calls of its own at once; what each was answered."""
    answered: list[list[str]] = [[""] * argument["calls"] for _ in range(argument["count"])]
    all_open = _Barrier(argument["count"])

    async def one(index: int) -> None:
        async with open_session() as session:
            await all_open.wait()
            async with anyio.create_task_group() as calls:
                for number in range(argument["calls"]):
                    calls.start_soon(echo, session, index, number)

    async def echo(session: Session, index: int, number: int) -> None:
        message = f"session {index} call {number}"
        result = await session.call({"name": "echo", "arguments": {"message": message}})
        answered[index][number] = result["content"][0]["text"]

    async with anyio.create_task_group() as sessions:
        for index in range(argument["count"]):
            sessions.start_soon(one, index)
    return answered


def _is_logged(beginning: str) -> Callable[[Json], bool]:
    return lambda told: str((told["params"] or {}).get("data")).startswith(beginning)


class _Barrier:
    def __init__(self, count: int) -> None:
        self._missing = count
        self._complete = anyio.Event()

    async def wait(self) -> None:
        self._missing -= 1
        if not self._missing:
            self._complete.set()
        await self._complete.wait()


async def _token_of_the_latest_progress(session: Session) -> int:
    reports = [told for told in session.told if told["method"] == "notifications/progress"]
    return int(reports[-1]["params"]["progressToken"])


async def _or_error(session: Session, answer: Awaitable[BaseModel]) -> Json:
    try:
        return wire(await answer)
    except session.sdk.fault as fault:
        error: Any = fault.error
        return {"error": {"code": error.code, "message": error.message, "data": error.data}}
