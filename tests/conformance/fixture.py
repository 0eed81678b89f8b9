"""A stdio server on the official SDK that offers everything the conformance suite's server scenarios look for.

The suite opens a session, and so a process of this file, per scenario. That is why it stands on the SDK's low-level
server and imports nothing else that is slow: it answers `initialize` about half a second after it was started.
Names, texts and schemas are the suite's; what is not fixed by a scenario is as short as it can be.
"""

import asyncio
import json
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TypeAlias

import mcp_types as types
from mcp.server.context import ServerRequestContext
from mcp.server.lowlevel import Server
from mcp.server.stdio import stdio_server
from mcp.shared.exceptions import MCPError

Context: TypeAlias = ServerRequestContext[dict[str, Any], Any]
Arguments: TypeAlias = dict[str, Any]
ToolBody: TypeAlias = Callable[[Context, Arguments], Awaitable[types.ContentBlock | list[types.ContentBlock]]]

STEP_SECONDS = 0.05
RECONNECTION_SECONDS = 2.5
"""`test_reconnection` outlasts the connection it was asked on, and not the one that the suite resumes it on: that is
between one and two times the gateway's `closeStreamAfter`, counted from when it begins to stream."""

RED_PIXEL_PNG = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAIAAACQd1PeAAAADElEQVR4nGP4z8AAAAMBAQDJ/pLvAAAAAElFTkSuQmCC"
SILENCE_WAV = "UklGRiwAAABXQVZFZm10IBAAAAABAAEAQB8AAEAfAAABAAgAZGF0YQgAAACAgICAgICAgA=="
LOG_LEVELS = ["debug", "info", "notice", "warning", "error", "critical", "alert", "emergency"]

NO_ARGUMENTS: dict[str, Any] = {"type": "object", "properties": {}}
SCHEMAS: dict[str, dict[str, Any]] = json.loads(Path(__file__).with_name("schemas.json").read_text())

_tools: dict[str, tuple[types.Tool, ToolBody]] = {}


@dataclass
class Session:
    """What a session may change; one process serves one session."""

    log_threshold: int = 0
    subscribed: set[str] = field(default_factory=set)


_session = Session()


def tool(name: str, does: str, takes: dict[str, Any] = NO_ARGUMENTS) -> Callable[[ToolBody], ToolBody]:
    def offer(body: ToolBody) -> ToolBody:
        _tools[name] = (types.Tool(name=name, description=does, input_schema=takes), body)
        return body

    return offer


def _one_string(name: str, means: str) -> dict[str, Any]:
    return {"type": "object", "properties": {name: {"type": "string", "description": means}}, "required": [name]}


def _text(text: str) -> types.TextContent:
    return types.TextContent(type="text", text=text)


def _picture() -> types.ImageContent:
    return types.ImageContent(type="image", data=RED_PIXEL_PNG, mime_type="image/png")


def _embedded(uri: str, mime_type: str, text: str) -> types.EmbeddedResource:
    return types.EmbeddedResource(
        type="resource", resource=types.TextResourceContents(uri=uri, mime_type=mime_type, text=text)
    )


@tool("test_simple_text", "Answers with a text")
async def simple_text(_context: Context, _arguments: Arguments) -> types.TextContent:
    return _text("This is a simple text response for testing.")


@tool("test_image_content", "Answers with an image")
async def image_content(_context: Context, _arguments: Arguments) -> types.ImageContent:
    return _picture()


@tool("test_audio_content", "Answers with audio")
async def audio_content(_context: Context, _arguments: Arguments) -> types.AudioContent:
    return types.AudioContent(type="audio", data=SILENCE_WAV, mime_type="audio/wav")


@tool("test_embedded_resource", "Answers with an embedded resource")
async def embedded_resource(_context: Context, _arguments: Arguments) -> types.EmbeddedResource:
    return _embedded("test://embedded-resource", "text/plain", "This is an embedded resource content.")


@tool("test_multiple_content_types", "Answers with a text, an image and a resource")
async def multiple_content_types(_context: Context, _arguments: Arguments) -> list[types.ContentBlock]:
    document = json.dumps({"test": "data", "value": 123})
    resource = _embedded("test://mixed-content-resource", "application/json", document)
    return [_text("Multiple content types test:"), _picture(), resource]


@tool("test_error_handling", "Always fails")
async def error_handling(_context: Context, _arguments: Arguments) -> types.TextContent:
    raise ToolFailed("This tool intentionally returns an error for testing")


@tool("test_tool_with_logging", "Logs three messages while it runs")
async def tool_with_logging(context: Context, _arguments: Arguments) -> types.TextContent:
    await _log(context, "Tool execution started")
    await asyncio.sleep(STEP_SECONDS)
    await _log(context, "Tool processing data")
    await asyncio.sleep(STEP_SECONDS)
    await _log(context, "Tool execution completed")
    return _text("Tool with logging executed successfully")


@tool("test_tool_with_progress", "Reports 0, 50 and 100 of 100 while it runs")
async def tool_with_progress(context: Context, _arguments: Arguments) -> types.TextContent:
    for done in (0, 50, 100):
        await context.session.report_progress(done, total=100)
        await asyncio.sleep(STEP_SECONDS)
    return _text("Tool with progress executed successfully")


@tool("test_reconnection", "Outlasts the connection its answer was asked on")
async def reconnection(_context: Context, _arguments: Arguments) -> types.TextContent:
    await asyncio.sleep(RECONNECTION_SECONDS)
    return _text("Reconnection test completed successfully")


@tool("test_sampling", "Asks the client's model", _one_string("prompt", "The prompt to send to the LLM"))
async def sampling(context: Context, arguments: Arguments) -> types.TextContent:
    capabilities = context.session.client_capabilities
    if capabilities is None or capabilities.sampling is None:
        raise ToolFailed("the client does not support sampling")
    prompt = types.SamplingMessage(role="user", content=_text(arguments["prompt"]))
    request = types.CreateMessageRequest(params=types.CreateMessageRequestParams(messages=[prompt], max_tokens=100))
    answer = await context.session.send_request(request, types.CreateMessageResult)
    return _text(f"LLM response: {answer.content.text if isinstance(answer.content, types.TextContent) else answer}")


@tool("test_elicitation", "Asks the user", _one_string("message", "The message to show the user"))
async def elicitation(context: Context, arguments: Arguments) -> types.TextContent:
    answer = await _ask_the_user(context, arguments["message"], "asked")
    return _text(f"User response: {answer}")


@tool("test_elicitation_sep1034_defaults", "Asks the user, with a default for each primitive type")
async def elicitation_defaults(context: Context, _arguments: Arguments) -> types.TextContent:
    answer = await _ask_the_user(context, "Please review the defaults", "asked_with_defaults")
    return _text(f"Elicitation completed: {answer}")


@tool("test_elicitation_sep1330_enums", "Asks the user, with each kind of enumeration")
async def elicitation_enums(context: Context, _arguments: Arguments) -> types.TextContent:
    answer = await _ask_the_user(context, "Please choose", "asked_with_enums")
    return _text(f"Elicitation completed: {answer}")


@tool("json_schema_2020_12_tool", "Tool with JSON Schema 2020-12 features", SCHEMAS["json_schema_2020_12"])
async def json_schema_2020_12(_context: Context, arguments: Arguments) -> types.TextContent:
    return _text(f"JSON Schema 2020-12 tool called with: {json.dumps(arguments)}")


class ToolFailed(Exception):
    """A tool's own failure, which the client's model sees; not an error of the protocol."""


async def _log(context: Context, data: str) -> None:
    if LOG_LEVELS.index("info") < _session.log_threshold:
        return
    params = types.LoggingMessageNotificationParams(level="info", logger="conformance", data=data)
    await context.session.send_notification(types.LoggingMessageNotification(params=params), context.request_id)


async def _ask_the_user(context: Context, message: str, schema: str) -> str:
    capabilities = context.session.client_capabilities
    if capabilities is None or capabilities.elicitation is None:
        raise ToolFailed("the client does not support elicitation")
    answer = await context.session.elicit_form(message, SCHEMAS[schema], context.request_id)
    return f"action={answer.action}, content={json.dumps(answer.content)}"


async def list_tools(_context: Context, _params: types.PaginatedRequestParams | None) -> types.ListToolsResult:
    return types.ListToolsResult(tools=[offered for offered, _ in _tools.values()])


async def call_tool(context: Context, params: types.CallToolRequestParams) -> types.CallToolResult:
    if params.name not in _tools:
        raise MCPError(types.INVALID_PARAMS, f"unknown tool {params.name!r}")
    _, body = _tools[params.name]
    try:
        content = await body(context, params.arguments or {})
    except ToolFailed as failure:
        return types.CallToolResult(content=[_text(str(failure))], is_error=True)
    return types.CallToolResult(content=content if isinstance(content, list) else [content])


RESOURCES = {
    "test://static-text": ("Static text", "text/plain", "This is the content of the static text resource."),
    "test://static-binary": ("Static binary", "image/png", RED_PIXEL_PNG),
    "test://watched-resource": ("Watched resource", "text/plain", "Watched resource content"),
}
TEMPLATE_HEAD, TEMPLATE_TAIL = "test://template/", "/data"


async def list_resources(_context: Context, _params: types.PaginatedRequestParams | None) -> types.ListResourcesResult:
    return types.ListResourcesResult(
        resources=[
            types.Resource(uri=uri, name=name, description=f"{name} for testing", mime_type=mime_type)
            for uri, (name, mime_type, _) in RESOURCES.items()
        ]
    )


async def list_templates(
    _context: Context, _params: types.PaginatedRequestParams | None
) -> types.ListResourceTemplatesResult:
    template = types.ResourceTemplate(
        uri_template=TEMPLATE_HEAD + "{id}" + TEMPLATE_TAIL, name="Data by id", mime_type="application/json"
    )
    return types.ListResourceTemplatesResult(resource_templates=[template])


async def read_resource(_context: Context, params: types.ReadResourceRequestParams) -> types.ReadResourceResult:
    return types.ReadResourceResult(contents=[_contents(params.uri)])


def _contents(uri: str) -> types.TextResourceContents | types.BlobResourceContents:
    if uri in RESOURCES:
        _, mime_type, body = RESOURCES[uri]
        if mime_type.startswith("text/"):
            return types.TextResourceContents(uri=uri, mime_type=mime_type, text=body)
        return types.BlobResourceContents(uri=uri, mime_type=mime_type, blob=body)
    if uri.startswith(TEMPLATE_HEAD) and uri.endswith(TEMPLATE_TAIL):
        key = uri.removeprefix(TEMPLATE_HEAD).removesuffix(TEMPLATE_TAIL)
        document = json.dumps({"id": key, "templateTest": True, "data": f"Data for ID: {key}"})
        return types.TextResourceContents(uri=uri, mime_type="application/json", text=document)
    raise MCPError(types.INVALID_PARAMS, "Resource not found", {"uri": uri})


async def subscribe(_context: Context, params: types.SubscribeRequestParams) -> types.EmptyResult:
    _session.subscribed.add(params.uri)
    return types.EmptyResult()


async def unsubscribe(_context: Context, params: types.UnsubscribeRequestParams) -> types.EmptyResult:
    _session.subscribed.discard(params.uri)
    return types.EmptyResult()


PROMPTS = {
    "test_simple_prompt": (),
    "test_prompt_with_arguments": ("arg1", "arg2"),
    "test_prompt_with_embedded_resource": ("resourceUri",),
    "test_prompt_with_image": (),
}


async def list_prompts(_context: Context, _params: types.PaginatedRequestParams | None) -> types.ListPromptsResult:
    return types.ListPromptsResult(
        prompts=[
            types.Prompt(
                name=name,
                description=f"Prompt {name}",
                arguments=[types.PromptArgument(name=argument, required=True) for argument in arguments],
            )
            for name, arguments in PROMPTS.items()
        ]
    )


async def get_prompt(_context: Context, params: types.GetPromptRequestParams) -> types.GetPromptResult:
    given = params.arguments or {}
    missing = [argument for argument in PROMPTS.get(params.name, ()) if argument not in given]
    if params.name not in PROMPTS or missing:
        raise MCPError(types.INVALID_PARAMS, f"unknown prompt {params.name!r} or missing arguments {missing}")
    return types.GetPromptResult(
        messages=[types.PromptMessage(role="user", content=content) for content in _prompt(params.name, given)]
    )


def _prompt(name: str, given: dict[str, str]) -> list[types.ContentBlock]:
    match name:
        case "test_prompt_with_arguments":
            return [_text(f"Prompt with arguments: arg1='{given['arg1']}', arg2='{given['arg2']}'")]
        case "test_prompt_with_embedded_resource":
            resource = _embedded(given["resourceUri"], "text/plain", "Embedded resource content for testing.")
            return [resource, _text("Please process the embedded resource above.")]
        case "test_prompt_with_image":
            return [_picture(), _text("Please analyze the image above.")]
        case _:
            return [_text("This is a simple prompt for testing.")]


async def complete(_context: Context, params: types.CompleteRequestParams) -> types.CompleteResult:
    words = [word for word in ("paris", "park", "party", "test") if word.startswith(params.argument.value)]
    return types.CompleteResult(completion=types.Completion(values=words, total=len(words), has_more=False))


async def set_level(_context: Context, params: types.SetLevelRequestParams) -> types.EmptyResult:
    _session.log_threshold = LOG_LEVELS.index(params.level)
    return types.EmptyResult()


def build() -> Server[dict[str, Any]]:
    server: Server[dict[str, Any]] = Server(
        "conformance-fixture",
        version="1.0.0",
        on_list_tools=list_tools,
        on_call_tool=call_tool,
        on_list_resources=list_resources,
        on_list_resource_templates=list_templates,
        on_read_resource=read_resource,
        on_subscribe_resource=subscribe,
        on_unsubscribe_resource=unsubscribe,
        on_list_prompts=list_prompts,
        on_get_prompt=get_prompt,
        on_completion=complete,
    )
    server.add_request_handler("logging/setLevel", types.SetLevelRequestParams, set_level)
    return server


async def serve() -> None:
    server = build()
    async with stdio_server() as (incoming, outgoing):
        await server.run(incoming, outgoing, server.create_initialization_options())


if __name__ == "__main__":
    asyncio.run(serve())
