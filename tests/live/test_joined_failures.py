"""Many servers behind one URL, some of which do not do what they should: the others serve as if nothing were."""

import json
import subprocess
import sys
import time
from pathlib import Path
from subprocess import PIPE
from typing import Any

import pytest

from tests.support.client import Client, called
from tests.support.gateway import ROOT, Gateway, eventually, serving
from tests.support.http import on_loop, soon
from tests.support.metrics import number
from tests.support.shelves import shelf, shelves
from tests.support.stateless import StatelessClient, said

LISTS = {"listTimeout": 0.3, "retry": 0.3, "maxRetry": 0.6, "readTimeout": 1, "fresh": 0.2, "read": "use"}
GOOD = ("good", shelf("good", "find", "pid"))
MISSING = {"command": "/nowhere/there-is-no-such-server"}


def joined(bad: dict[str, Any], restarts: dict[str, Any] | None = None, **lists: Any) -> dict[str, Any]:
    """A server that is well, and one that may not be."""
    restarts = restarts or {"deaths": 50, "backoff": 0.05}
    return shelves(("bad", dict(bad)), GOOD, catalog={**LISTS, **lists}, restarts=restarts)


def at(method: str, deed: object, *tools: str, settings: dict[str, Any] | None = None, **has: Any) -> dict[str, Any]:
    return shelf("bad", *tools, at={method: deed}, settings=settings, **has)


async def opened(gateway: Gateway, path: str = "/mcp", **given: Any) -> Client:
    return await Client(gateway, path).open(**given)


async def tools(client: Client) -> list[str]:
    """Their names, of all pages."""
    found: list[str] = []
    cursor: dict[str, Any] = {}
    while True:
        result = (await client.call("tools/list", cursor))["result"]
        found += [tool["name"] for tool in result["tools"]]
        if "nextCursor" not in result:
            return found
        cursor = {"cursor": result["nextCursor"]}


async def is_well(client: Client) -> None:
    assert [name for name in await tools(client) if name.startswith("good")] == ["good__find", "good__pid"]
    assert '"server": "good"' in await client.tool("good__find")


def absence(gateway: Gateway) -> list[str]:
    return [line for line in gateway.own_log().split("\n") if "lists could not be read" in line]


@pytest.mark.parametrize(
    ("bad", "reason"),
    [
        (MISSING, "command_not_found"),
        (at("initialize", "exit"), "exited_before_ready"),
        (at("initialize", "hang", settings={"startTimeout": 0.6}), "start_timed_out"),
        (at("tools/list", "exit"), "exited"),
        (at("tools/list", "hang"), "timed_out"),
        (at("tools/list", "noise"), "timed_out"),
    ],
    ids=["never starts", "ends in initialize", "hangs in initialize", "ends in its list", "hangs in its list", "noise"],
)
def test_a_server_that_cannot_be_read_is_absent_with_a_reason(bad: dict[str, Any], reason: str, tmp_path: Path) -> None:
    @on_loop
    async def absent(gateway: Gateway) -> None:
        client = await opened(gateway)
        began = time.monotonic()
        await is_well(client)
        assert time.monotonic() - began < 5
        assert eventually(lambda: absence(gateway))
        assert f"reason={reason}" in absence(gateway)[0]
        assert "server=bad" in absence(gateway)[0]
        await is_well(client)
        unknown = await client.call("tools/call", called("bad__anything"))
        assert unknown["error"]["code"] == -32602

    with serving(joined(bad), tmp_path) as gateway:
        absent(gateway)


def test_a_server_that_can_never_start_is_told_by_the_metrics(tmp_path: Path) -> None:
    @on_loop
    async def told(gateway: Gateway) -> None:
        await is_well(await opened(gateway))
        assert await number(gateway, "viaduct_server_unread", server="bad", reason="exited_before_ready") == 1
        assert await number(gateway, "viaduct_server_state", server="bad", state="failed") == 1
        assert await number(gateway, "viaduct_server_unread", server="good") == 0

    with serving(joined(at("initialize", "exit"), restarts={"deaths": 1}), tmp_path) as gateway:
        told(gateway)


def test_a_server_that_never_gives_one_of_its_lists_is_there_with_the_others(tmp_path: Path) -> None:
    @on_loop
    async def partly(gateway: Gateway) -> None:
        client = await opened(gateway)
        stream = await client.listen()
        await is_well(client)
        heard = [(await anext(stream.messages()))["method"]]
        assert heard == ["notifications/tools/list_changed"]
        assert await tools(client) == ["bad__half", "good__find", "good__pid"]
        assert '"tool": "half"' in await client.tool("bad__half")
        assert "some of a server's lists could not be read" in gateway.own_log()
        assert await number(gateway, "viaduct_server_unread", server="bad", reason="timed_out") == 1

    with serving(joined(at("prompts/list", "hang", "half", prompts=["never"])), tmp_path) as gateway:
        partly(gateway)


def test_a_list_does_not_wait_for_the_slowest_and_the_rest_follows(tmp_path: Path) -> None:
    slow = shelf("bad", "late", slow=1.5)

    @on_loop
    async def follows(gateway: Gateway) -> None:
        began = time.monotonic()
        client = await opened(gateway)
        stream = await client.listen()
        names = await tools(client)
        assert time.monotonic() - began < 1.5
        assert names == ["good__find", "good__pid"]
        told = await anext(stream.messages())
        assert told["method"] == "notifications/tools/list_changed"
        assert await tools(client) == ["bad__late", "good__find", "good__pid"]
        assert '"tool": "late"' in await client.tool("bad__late")

    with serving(joined(slow, readTimeout=10), tmp_path) as gateway:
        follows(gateway)


@pytest.mark.parametrize("policy", [[{"allow": ["bad", "good"]}], [{"allow": ["*"]}]], ids=["named", "all"])
def test_a_call_waits_until_it_is_known_whose_it_is(policy: list[Any], tmp_path: Path) -> None:
    slow = shelf("bad", "late", resources=["late://one"], slow=0.4)

    @on_loop
    async def calls(gateway: Gateway) -> None:
        began = time.monotonic()
        stateless = StatelessClient(gateway, "/mcp")
        assert '"tool": "late"' in said(await stateless.call("tools/call", called("bad__late")))
        assert "result" in await stateless.call("resources/read", {"uri": "late://one"})
        unknown = await stateless.call("tools/call", called("bad__later"))
        assert unknown["error"]["code"] == -32602
        assert time.monotonic() - began < 5

    patient = {**LISTS, "listTimeout": 5, "readTimeout": 10}
    with serving(shelves(("bad", slow), GOOD, catalog=patient, policy=policy), tmp_path) as gateway:
        calls(gateway)


def test_a_server_that_does_not_start_any_more_fails_its_own_calls_only(tmp_path: Path) -> None:
    """Its tools stay listed, for it may yet start."""
    flag = tmp_path / "well"
    flag.touch()

    @on_loop
    async def fails(gateway: Gateway) -> None:
        client = await opened(gateway)
        assert "bad__find" in await tools(client)
        flag.unlink()
        for _ in range(2):
            failed = await client.call("tools/call", called("bad__find"))
            assert failed["error"]["code"] in (-31001, -31002), failed
            assert failed["error"]["data"]["server"] == "bad"
            await is_well(client)
        flag.touch()
        assert await soon(lambda: works(client, "bad__find"), 10)
        assert (await (await opened(gateway)).tool("good__pid")).isdigit()

    with serving(joined(at("initialize", f"exit until {flag}", "find")), tmp_path) as gateway:
        fails(gateway)


async def works(client: Client, name: str) -> bool:
    return "result" in await client.call("tools/call", called(name))


def test_a_server_that_can_be_read_at_last_is_there_from_then_on(tmp_path: Path) -> None:
    flag = tmp_path / "well"

    @on_loop
    async def recovers(gateway: Gateway) -> None:
        client = await opened(gateway)
        stream = await client.listen()
        assert await tools(client) == ["good__find", "good__pid"]
        assert eventually(lambda: len(absence(gateway)) > 1), "it is tried again"
        flag.touch()
        told = await anext(stream.messages())
        assert told["method"] == "notifications/tools/list_changed"
        assert '"tool": "back"' in await client.tool("bad__back")

    with serving(joined(at("tools/list", f"exit until {flag}", "back")), tmp_path) as gateway:
        recovers(gateway)


@pytest.mark.parametrize(
    ("garbage", "kept"),
    [
        (7, []),
        ({"tools": 7}, []),
        ({"tools": [7, None, {}, {"name": 7}, {"name": "sane", "inputSchema": {"type": "object"}}]}, ["bad__sane"]),
        ({"tools": [{"name": "twin", "title": "first"}, {"name": "twin", "title": "second"}]}, ["bad__twin"]),
        ({"tools": [{"name": "again"}], "nextCursor": "again"}, ["bad__again"]),
        ({"tools": [{"name": "once"}], "nextCursor": 7}, ["bad__once"]),
    ],
    ids=["a number", "no list", "some sane", "twins", "the same cursor", "no cursor"],
)
def test_of_garbage_the_part_that_makes_sense_is_listed(garbage: object, kept: list[str], tmp_path: Path) -> None:
    @on_loop
    async def lists(gateway: Gateway) -> None:
        client = await opened(gateway)
        assert await tools(client) == [*kept, "good__find", "good__pid"]
        await is_well(client)
        answer = await client.call("tools/call", called("bad__sane" if "bad__sane" in kept else "good__find"))
        assert "-32" in str(answer) or "result" in answer

    with serving(joined(at("tools/list", garbage)), tmp_path) as gateway:
        lists(gateway)


def test_ten_thousand_tools_are_listed_page_by_page_and_each_can_be_called(tmp_path: Path) -> None:
    @on_loop
    async def lists(gateway: Gateway) -> None:
        client = await opened(gateway)
        names = await tools(client)
        assert len(names) == len(set(names)) == 10_002
        assert names[-2:] == ["good__find", "good__pid"]
        assert '"tool": "number_9999"' in await client.tool("bad__number_9999")

    with serving(joined(shelf("bad", count=10_000), listTimeout=15, readTimeout=15), tmp_path) as gateway:
        lists(gateway)


def test_of_a_list_that_never_ends_so_many_pages_are_read(tmp_path: Path) -> None:
    @on_loop
    async def lists(gateway: Gateway) -> None:
        names = await tools(await opened(gateway))
        assert names == [*(f"bad__endless_{number}" for number in range(7)), "good__find", "good__pid"]

    with serving(joined(at("tools/list", "endless"), listTimeout=15, pages=7), tmp_path) as gateway:
        lists(gateway)


def refused(content: dict[str, Any], folder: Path) -> str:
    """What is said on stderr by a gateway that does not serve this."""
    path = folder / "viaduct.json"
    path.write_text(json.dumps(content))
    command = [sys.executable, "-m", "app", "serve", "--port", "0", str(path)]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=30, check=False)
    assert (done.returncode, done.stdout) == (78, ""), done.stderr
    assert "Traceback" not in done.stderr
    return done.stderr.splitlines()[-1]


def test_two_things_of_one_name_are_refused_at_the_start_and_named(tmp_path: Path) -> None:
    other = ("other", shelf("other", "pid", "alone", prompts=["review"]))
    bad = shelf("bad", "find", prompts=["review"])
    names = {"naming": "none", "catalog": LISTS}
    said = refused(shelves(("bad", bad), GOOD, other, **names), tmp_path)
    assert "the tool 'find' of bad and good at /mcp" in said
    assert "the tool 'pid' of good and other at /mcp" in said
    assert "the prompt 'review' of bad and other at /mcp" in said
    group = {"naming": "prefix", "groups": {"two": {"servers": ["other", "good"], "naming": "none"}}}
    said = refused(shelves(("bad", bad), GOOD, other, catalog=LISTS, **group), tmp_path)
    assert "the tool 'pid' of other and good at /groups/two" in said
    assert "/mcp" not in said


def test_one_of_one_name_may_be_renamed_or_denied(tmp_path: Path) -> None:
    named = shelf("bad", "find", "pid", settings={"tools": {"deny": ["pid"], "change": {"find": {"name": "search"}}}})

    @on_loop
    async def serves(gateway: Gateway) -> None:
        client = await opened(gateway)
        assert await tools(client) == ["search", "find", "pid"]
        assert '"server": "bad", "tool": "find"' in await client.tool("search")

    with serving(shelves(("bad", named), GOOD, naming="none", catalog=LISTS), tmp_path) as gateway:
        serves(gateway)


def test_of_two_that_come_to_have_one_name_the_second_is_left_out_and_the_log_says_so(tmp_path: Path) -> None:
    late = shelf("late", "change", after=["change", "find", "new"])

    @on_loop
    async def left_out(gateway: Gateway) -> None:
        client = await opened(gateway)
        assert await tools(client) == ["find", "pid", "change"]
        stream = await client.listen()
        await client.tool("change")
        assert (await anext(stream.messages()))["method"] == "notifications/tools/list_changed"
        assert await tools(client) == ["find", "pid", "change", "new"]
        assert '"server": "good"' in await client.tool("find")
        assert eventually(lambda: "of the second is left out" in gateway.own_log()), gateway.own_log()
        [line] = [line for line in gateway.own_log().split("\n") if "of the second is left out" in line]
        assert 'named=find servers=["good", "late"]' in line
        assert "at=/mcp" in line

    with serving(shelves(GOOD, ("late", late), naming="none", catalog=LISTS), tmp_path) as gateway:
        left_out(gateway)


def test_a_server_that_cannot_be_read_does_not_keep_names_from_being_agreed_on(tmp_path: Path) -> None:
    @on_loop
    async def serves(gateway: Gateway) -> None:
        assert await tools(await opened(gateway)) == ["find", "pid"]

    for bad in (MISSING, at("tools/list", "hang")):
        with serving(shelves(("bad", dict(bad)), GOOD, naming="none", catalog=LISTS), tmp_path) as gateway:
            serves(gateway)


def test_a_gateway_that_waits_for_what_servers_offer_can_be_stopped(tmp_path: Path) -> None:
    path = tmp_path / "viaduct.json"
    slow = shelf("bad", "late", at={"initialize": "hang"})
    path.write_text(json.dumps(shelves(("bad", slow), GOOD, naming="none")))
    command = [sys.executable, "-m", "app", "serve", "--port", "0", str(path)]
    with subprocess.Popen(command, cwd=ROOT, stdout=PIPE, stderr=PIPE, text=True) as process:
        assert process.stderr is not None
        assert any("lists read" in line for line in process.stderr)
        process.terminate()
        assert process.wait(10) == 0
