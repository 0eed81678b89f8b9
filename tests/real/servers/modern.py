"""A stdio server built on `mcp` 2.x, with everything that a stateless client can meet: `modern.py [--modern-only]`.

The SDK speaks both eras, and its first request decides which. With `--modern-only` an `initialize` that comes first is
refused and decides nothing.
"""

import sys
import warnings
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Annotated, Any

import anyio
from mcp.server.elicitation import AcceptedElicitation, ElicitationResult
from mcp.server.mcpserver import Context, MCPServer
from mcp.server.mcpserver.resolve import Elicit, ListRoots, Resolve, Sample
from mcp.server.stdio import stdio_server
from mcp.shared.message import SessionMessage
from mcp.types import (
    UNSUPPORTED_PROTOCOL_VERSION,
    Completion,
    CreateMessageResult,
    ElicitRequest,
    ElicitRequestURLParams,
    ElicitResult,
    EmptyResult,
    ErrorData,
    InputRequiredResult,
    JSONRPCError,
    JSONRPCRequest,
    ListRootsResult,
    SamplingMessage,
    SetLevelRequestParams,
    TextContent,
)
from pydantic import BaseModel

CITIES = ("Lima", "Lisbon", "Oslo")
NOTE = "note://one"

server = MCPServer("rounds", title="Rounds", version="1.0.0", instructions="Ask, and be asked.")
cancelled: list[str] = []


class Weather(BaseModel):
    city: str
    degrees: float


class Person(BaseModel):
    name: str


class Pet(BaseModel):
    pet: str


def ask_name() -> Elicit[Person]:
    return Elicit("Who are you?", Person)


async def ask_pet(person: Annotated[Person, Resolve(ask_name)]) -> Elicit[Pet]:
    return Elicit(f"What is the pet of {person.name} called?", Pet)


def sample(prompt: str) -> Sample:
    asked = SamplingMessage(role="user", content=TextContent(type="text", text=prompt))
    return Sample([asked], max_tokens=12)


def roots() -> ListRoots:
    return ListRoots()


@server.tool()
def echo(message: str) -> str:
    """Says it again."""
    return f"Echo: {message}"


@server.tool()
def weather(city: str) -> Weather:
    """Has a structure."""
    return Weather(city=city, degrees=21.5)


@server.tool()
def form(answer: Annotated[ElicitationResult[Person], Resolve(ask_name)]) -> str:
    """Asks the user for a form."""
    return f"Hello, {answer.data.name}!" if isinstance(answer, AcceptedElicitation) else answer.action


@server.tool()
def two_forms(person: Annotated[Person, Resolve(ask_name)], pet: Annotated[Pet, Resolve(ask_pet)]) -> str:
    """Asks the user twice, the second time with what the first answer was."""
    return f"{person.name} and {pet.pet}"


@server.tool()
async def page(url: str, ctx: Context[Any, Any]) -> str | InputRequiredResult:
    """Sends the user to a page."""
    answer = (ctx.input_responses or {}).get("page")
    if isinstance(answer, ElicitResult):
        return f"visited: {answer.action}"
    params = ElicitRequestURLParams(message="Please pay", url=url)
    return InputRequiredResult(input_requests={"page": ElicitRequest(params=params)})


@server.tool()
def think(prompt: str, thought: Annotated[CreateMessageResult, Resolve(sample)]) -> str:
    """Asks the client's model."""
    assert isinstance(thought.content, TextContent)
    return f"{prompt}: {thought.content.text}"


@server.tool()
def places(found: Annotated[ListRootsResult, Resolve(roots)]) -> str:
    """Asks for the client's roots."""
    return " ".join(str(root.uri) for root in found.roots)


@server.tool()
def all_at_once(
    prompt: str,
    person: Annotated[Person, Resolve(ask_name)],
    thought: Annotated[CreateMessageResult, Resolve(sample)],
    found: Annotated[ListRootsResult, Resolve(roots)],
) -> str:
    """Asks three questions of three kinds in one round."""
    assert isinstance(thought.content, TextContent)
    return f"{person.name} in {len(found.roots)} place said {thought.content.text} to {prompt}"


@server.tool()
async def slow(seconds: float, steps: int, ctx: Context[Any, Any]) -> str:
    """Reports each step; remembers that it was cancelled."""
    try:
        for step in range(1, steps + 1):
            await anyio.sleep(seconds / steps)
            await ctx.report_progress(step, steps)
    except anyio.get_cancelled_exc_class():
        cancelled.append(f"{seconds:g} s")
        raise
    return "completed"


@server.tool()
def was_cancelled() -> str:
    """Which slow calls ended early."""
    return f"cancelled: {', '.join(cancelled)}"


@server.tool()
async def talk(ctx: Context[Any, Any]) -> str:
    """Logs at three levels."""
    await ctx.debug("a detail")
    await ctx.info("a fact")
    await ctx.error("a fault")
    return "talked"


@server.tool()
async def touch(ctx: Context[Any, Any]) -> str:
    """Changes the note."""
    await ctx.notify_resource_updated(NOTE)
    return "touched"


@server.tool()
async def grow(name: str, ctx: Context[Any, Any]) -> str:
    """Adds a tool."""
    server.add_tool(lambda: name, name=name)
    await ctx.notify_tools_changed()
    return f"there is {name} now"


@server.prompt()
def invite(city: str) -> str:
    """Invites to a city."""
    return f"Come to {city}!"


@server.resource(NOTE)
def note() -> str:
    return "Remember the milk"


@server.resource("note://{number}/copy")
def copied_note(number: str) -> str:
    return f"Copy of {number}"


@server.completion()  # type: ignore[no-untyped-call, untyped-decorator]  # so it is in the SDK
async def complete(_ref: object, argument: Any, _context: object) -> Completion:
    return Completion(values=[city for city in CITIES if city.startswith(argument.value)])


async def set_level(_context: object, _params: SetLevelRequestParams) -> EmptyResult:
    """Without this the SDK would log all the same, and not declare that it does."""
    return EmptyResult()


server._lowlevel_server.add_request_handler("logging/setLevel", SetLevelRequestParams, set_level)


async def main() -> None:
    if "--modern-only" not in sys.argv[1:]:
        await server.run_stdio_async()
        return
    lowlevel = server._lowlevel_server  # the public run() takes no streams
    async with stdio_server() as (incoming, outgoing), _without_handshake(incoming, outgoing) as served:
        await lowlevel.run(served, outgoing, lowlevel.create_initialization_options())


@asynccontextmanager
async def _without_handshake(incoming: Any, outgoing: Any) -> AsyncIterator[Any]:
    """What comes in, without the handshakes before the first other request."""
    passed_on, served = anyio.create_memory_object_stream[Any]()

    async def pass_on() -> None:
        async with passed_on:
            is_decided = False
            async for item in incoming:
                asked = item.message if isinstance(item, SessionMessage) else None
                if not is_decided and isinstance(asked, JSONRPCRequest):
                    if asked.method == "initialize":
                        await outgoing.send(SessionMessage(_refusal(asked)))
                        continue
                    is_decided = True
                await passed_on.send(item)

    async with anyio.create_task_group() as tasks:
        tasks.start_soon(pass_on)
        yield served
        tasks.cancel_scope.cancel()


def _refusal(asked: JSONRPCRequest) -> JSONRPCError:
    data = {"supported": ["2026-07-28"], "requested": (asked.params or {}).get("protocolVersion")}
    error = ErrorData(code=UNSUPPORTED_PROTOCOL_VERSION, message="there is no handshake here", data=data)
    return JSONRPCError(jsonrpc="2.0", id=asked.id, error=error)


if __name__ == "__main__":
    warnings.simplefilter("ignore")  # log messages are deprecated as of the revision that they are tried with here
    anyio.run(main)
