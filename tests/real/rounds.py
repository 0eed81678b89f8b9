"""What each server is asked in a full round, and what its user then sees."""

from dataclasses import dataclass, replace
from typing import Any

from tests.real.driving import Step
from tests.real.installed import Json

ELICIT, SAMPLE, ROOTS = "elicitation/create", "sampling/createMessage", "roots/list"
SAID = {"role": "assistant", "model": "none", "content": {"type": "text", "text": "said"}}
PAGE = "https://example.com/pay"
DATA = "data:text/plain,hello"


def _tool(name: str, /, **arguments: Any) -> Json:
    return {"name": name, "arguments": arguments}


def _form(name: str, content: Json, **arguments: Any) -> Json:
    return {"tool": _tool(name, **arguments), "answers": {ELICIT: {"action": "accept", "content": content}}}


def _url(name: str, **arguments: Any) -> Json:
    return {"tool": _tool(name, **arguments), "answers": {ELICIT: {"action": "accept"}}}


def _sampling(name: str, **arguments: Any) -> Json:
    return {"tool": _tool(name, **arguments), "answers": {SAMPLE: SAID}}


def _completion(ref: Json, value: str, argument: str = "name", **context: str) -> Json:
    partial = {"ref": ref, "argument": {"name": argument, "value": value}}
    return partial | ({"context": {"arguments": context}} if context else {})


ALL_AT_ONCE = {
    "tool": _tool("all_at_once", prompt="say it"),
    "answers": {ELICIT: {"action": "accept", "content": {"name": "Ada"}}, SAMPLE: SAID},
}


@dataclass(frozen=True)
class Round:
    """What a server is asked, and what its user then sees."""

    server: str
    steps: tuple[Step, ...]
    title: str
    tools: frozenset[str]
    says: Json
    """The texts, or parts of them, that come back by the steps' names."""
    reports: tuple[int, ...]
    logged: tuple[tuple[str, str], ...]
    completed: tuple[str, ...]
    changed: str
    watched: str


EVERYTHING = Round(
    "everything",
    (
        Step("echo", "call", _tool("echo", message="ą 漢 🙂")),
        Step("form", "ask", _form("trigger-elicitation-request", {"name": "Ada", "check": True, "integer": 7})),
        Step("url", "ask", _url("trigger-url-elicitation", url=PAGE)),
        Step("url first", "ask", _url("trigger-url-elicitation", url=PAGE, errorPath=True)),
        Step("sampling", "ask", _sampling("trigger-sampling-request", prompt="say it", maxTokens=12)),
        Step("roots", "ask", {"tool": _tool("get-roots-list"), "answers": {}}),
        Step("progress", "progress", _tool("trigger-long-running-operation", duration=0.3, steps=3)),
        Step("log", "log", {"level": "debug", "tool": _tool("toggle-simulated-logging")}),
        Step("log off", "call", _tool("toggle-simulated-logging")),
        Step(
            "subscription",
            "subscribe",
            {"uri": "demo://resource/dynamic/text/7", "tool": _tool("toggle-subscriber-updates")},
        ),
        Step("updates off", "call", _tool("toggle-subscriber-updates")),
        Step(
            "list change",
            "subscribe",
            {"lists": ["resources"], "tool": _tool("gzip-file-as-resource", name="hello.gz", data=DATA)},
        ),
        Step(
            "completion",
            "complete",
            _completion({"type": "ref/prompt", "name": "completable-prompt"}, "A", department="Engineering"),
        ),
        Step("prompt", "prompt", _tool("args-prompt", city="Oslo", state="Viken")),
        Step("resource", "read", {"uri": "demo://resource/static/document/features.md"}),
        Step(
            "cancel",
            "cancel",
            {
                "tool": _tool("trigger-long-running-operation", duration=3, steps=30),
                "next": _tool("trigger-long-running-operation", duration=0.2, steps=2),
            },
        ),
    ),
    title="Everything Reference Server",
    tools=frozenset({"echo", "trigger-elicitation-request", "trigger-sampling-request", "get-roots-list"}),
    says={
        "echo": "Echo: ą 漢 🙂",
        "form": "- Name: Ada\n- Agreed to terms: true\n- Favorite Integer: 7",
        "url": "completed the URL elicitation",
        "sampling": '"text": "said"',
        "roots": "(1 total)",
        "progress": "completed",
        "log": "Started simulated",
        "prompt": "What's weather in Oslo, Viken?",
        "resource": "# Everything Server - Features",
    },
    reports=(1, 2, 3),
    logged=(),
    completed=("Alice",),
    changed="notifications/resources/list_changed",
    watched="demo://resource/dynamic/text/7",
)

ROUNDS = Round(
    "rounds",
    (
        Step("echo", "call", _tool("echo", message="ą 漢 🙂")),
        Step("structured", "call", _tool("weather", city="Oslo")),
        Step("form", "ask", _form("form", {"name": "Ada"})),
        Step("declined", "ask", {"tool": _tool("form"), "answers": {ELICIT: {"action": "decline"}}}),
        Step("two rounds", "ask", _form("two_forms", {"name": "Ada", "pet": "Rex"})),
        Step("url", "ask", _url("page", url=PAGE)),
        Step("sampling", "ask", _sampling("think", prompt="say it")),
        Step("roots", "ask", {"tool": _tool("places"), "answers": {}}),
        Step("all at once", "ask", ALL_AT_ONCE),
        Step("progress", "progress", _tool("slow", seconds=0.3, steps=3)),
        Step("no log", "log", {"level": None, "tool": _tool("talk")}),
        Step("log", "log", {"level": "info", "tool": _tool("talk")}),
        Step("log of errors", "log", {"level": "error", "tool": _tool("talk")}),
        Step("subscription", "subscribe", {"uri": "note://one", "tool": _tool("touch")}),
        Step("list change", "subscribe", {"lists": ["tools"], "tool": _tool("grow", name="grown")}),
        Step("completion", "complete", _completion({"type": "ref/prompt", "name": "invite"}, "Li", "city")),
        Step("prompt", "prompt", _tool("invite", city="Oslo")),
        Step("resource", "read", {"uri": "note://7/copy"}),
        Step(
            "cancel",
            "cancel",
            {"tool": _tool("slow", seconds=30, steps=300), "next": _tool("slow", seconds=0.2, steps=2)},
        ),
        Step("cancelled", "settle", {"tool": _tool("was_cancelled"), "text": "30 s"}),
    ),
    title="Rounds",
    tools=frozenset({"echo", "form", "think", "places", "slow"}),
    says={
        "echo": "Echo: ą 漢 🙂",
        "form": "Hello, Ada!",
        "url": "visited: accept",
        "sampling": "say it: said",
        "progress": "completed",
        "log": "talked",
        "prompt": "Come to Oslo!",
        "resource": "Copy of 7",
    },
    reports=(1, 2, 3),
    logged=(("info", "a fact"), ("error", "a fault")),
    completed=("Lima", "Lisbon"),
    changed="notifications/tools/list_changed",
    watched="note://one",
)

FIXTURE = Round(
    "fixture",
    (
        Step("echo", "call", _tool("test_simple_text")),
        Step("form", "ask", _form("test_elicitation", {"username": "Ada", "email": "a@b.c"}, message="Who?")),
        Step("sampling", "ask", _sampling("test_sampling", prompt="say it")),
        Step("roots", "ask", {"tool": _tool("test_input_required_result_list_roots"), "answers": {}}),
        Step("progress", "progress", _tool("test_tool_with_progress")),
        Step("no log", "log", {"level": None, "tool": _tool("test_tool_with_logging")}),
        Step("log", "log", {"level": "info", "tool": _tool("test_tool_with_logging")}),
        Step("log of errors", "log", {"level": "error", "tool": _tool("test_tool_with_logging")}),
        Step(
            "subscription",
            "subscribe",
            {"uri": "test://watched-resource", "tool": _tool("test_trigger_resource_update")},
        ),
        Step("list change", "subscribe", {"lists": ["tools"], "tool": _tool("test_trigger_tool_change")}),
        Step(
            "completion",
            "complete",
            _completion({"type": "ref/prompt", "name": "test_prompt_with_arguments"}, "par", "arg1"),
        ),
        Step("prompt", "prompt", _tool("test_simple_prompt")),
        Step("resource", "read", {"uri": "test://static-text"}),
    ),
    title="conformance-fixture",
    tools=frozenset({"test_simple_text", "test_sampling"}),
    says={
        "echo": "This is a simple text response for testing.",
        "form": 'User response: action=accept, content={"username":"Ada","email":"a@b.c"}',
        "sampling": "LLM response: said",
        "progress": "Tool with progress executed successfully",
        "log": "Tool with logging executed successfully",
        "prompt": "This is a simple prompt for testing.",
        "resource": "This is the content of the static text resource.",
    },
    reports=(0, 50, 100),
    logged=(("info", "Tool execution started"), ("info", "Tool processing data"), ("info", "Tool execution completed")),
    completed=("paris", "park", "party"),
    changed="notifications/tools/list_changed",
    watched="test://watched-resource",
)

FIRST = replace(FIXTURE, server="first")
"""The same offers, by a server on `mcp` 1.x."""
