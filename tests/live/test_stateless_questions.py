"""Stateless clients of a server of the handshake: its questions become `input_required`, and a retry goes on."""

import base64
import json
from collections.abc import Iterator
from typing import Any

import pytest

from tests.support.client import called
from tests.support.gateway import OTHER_TOKEN, Gateway, config, entry, eventually, serving
from tests.support.http import Reply, on_loop
from tests.support.stateless import (
    ACCEPTED,
    ANSWERS,
    CALL,
    SAMPLED,
    StatelessClient,
    answers,
    methods_of,
    said,
)

PARK = 1.0
IDLE = 1.0


@pytest.fixture(scope="module")
def gateway(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Gateway]:
    with serving(config({"stage": entry(), "other": entry()}), tmp_path_factory.mktemp("questions")) as gateway:
        yield gateway


@pytest.fixture(scope="module")
def hasty(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Gateway]:
    """It waits neither for answers nor for calls."""
    content = config({"stage": entry(stopTimeout=0.5)}, stateless={"parkTimeout": PARK, "idleTimeout": IDLE})
    with serving(content, tmp_path_factory.mktemp("hasty")) as gateway:
        yield gateway


QUESTIONS = {
    "form": "elicitation/create",
    "url": "elicitation/create",
    "sample": "sampling/createMessage",
    "roots": "roots/list",
}


@pytest.mark.parametrize("what", QUESTIONS)
@on_loop
async def test_a_question_is_asked_by_a_result_and_answered_by_a_retry(gateway: Gateway, what: str) -> None:
    client = StatelessClient(gateway)
    asks = await client.asked("interview", rounds=[[what]], nonce=what)
    [question] = asks["inputRequests"].values()
    assert question["method"] == QUESTIONS[what]
    assert "elicitationId" not in question.get("params", {})
    answer = await client.retry(asks, answers(asks), "interview", rounds=[[what]], nonce=what)
    assert json.loads(said(answer)) == {"nonce": what, "said": [{what: ANSWERS[QUESTIONS[what]]}]}


@on_loop
async def test_all_that_is_open_is_asked_together(gateway: Gateway) -> None:
    client = StatelessClient(gateway)
    rounds = [["form", "sample", "roots"]]
    asks = await client.asked("interview", rounds=rounds)
    assert methods_of(asks) == ["elicitation/create", "roots/list", "sampling/createMessage"]
    answer = await client.retry(asks, answers(asks), "interview", rounds=rounds)
    assert sorted(json.loads(said(answer))["said"][0]) == ["form", "roots", "sample"]


@on_loop
async def test_a_call_goes_on_at_the_same_child_round_after_round(gateway: Gateway) -> None:
    client = StatelessClient(gateway)
    rounds = [["form"], ["sample", "roots"], ["form"]]
    asks = await client.asked("interview", rounds=rounds, nonce="n")
    states = set()
    for expected in (["elicitation/create"], ["roots/list", "sampling/createMessage"], ["elicitation/create"]):
        assert methods_of(asks) == expected
        states.add(asks["requestState"])
        answer = await client.retry(asks, answers(asks), "interview", rounds=rounds, nonce="n")
        asks = answer["result"]
    assert [sorted(each) for each in json.loads(said(answer))["said"]] == [["form"], ["roots", "sample"], ["form"]]
    assert len(states) == 3


@on_loop
async def test_what_was_not_answered_is_asked_again_and_answers_count_once(gateway: Gateway) -> None:
    client = StatelessClient(gateway)
    rounds = [["form", "sample"]]
    asks = await client.asked("interview", rounds=rounds)
    [form] = [key for key, asked in asks["inputRequests"].items() if asked["method"] == "elicitation/create"]
    rest = (await client.retry(asks, {form: ACCEPTED, "nobody asked": {}}, "interview", rounds=rounds))["result"]
    assert methods_of(rest) == ["sampling/createMessage"]
    again = {form: {"action": "decline"}, **answers(rest)}
    told = json.loads(said(await client.retry(rest, again, "interview", rounds=rounds)))["said"]
    assert told == [{"form": ACCEPTED, "sample": SAMPLED}]


@on_loop
async def test_a_retry_without_any_answer_asks_again(gateway: Gateway) -> None:
    client = StatelessClient(gateway)
    asks = await client.asked("interview", rounds=[["form"]])
    again = (await client.retry(asks, {}, "interview", rounds=[["form"]]))["result"]
    assert again["inputRequests"] == asks["inputRequests"]
    assert again["requestState"] != asks["requestState"]


@on_loop
async def test_what_a_client_did_not_declare_it_is_never_asked(gateway: Gateway) -> None:
    client = StatelessClient(gateway, "stage", capabilities={"sampling": {}})
    told = await client.tool("received")
    [greeting] = [line for line in json.loads(told) if '"initialize"' in line]
    assert json.loads(greeting)["params"]["capabilities"] == {"sampling": {}}
    rounds = [["form", "roots", "sample", "url"]]
    asks = await client.asked("interview", rounds=rounds)
    assert methods_of(asks) == ["sampling/createMessage"]
    told = json.loads(said(await client.retry(asks, answers(asks), "interview", rounds=rounds)))["said"][0]
    assert {what: answer["error"]["code"] for what, answer in told.items() if "error" in answer} == {
        "form": -32601,
        "roots": -32601,
        "url": -32601,
    }


@on_loop
async def test_a_client_that_declares_nothing_is_asked_nothing(gateway: Gateway) -> None:
    told = json.loads(await StatelessClient(gateway, "stage", capabilities={}).tool("interview", rounds=[["sample"]]))
    assert told["said"][0]["sample"]["error"]["code"] == -32601


# States that are of no use.


def tampered(state: str) -> str:
    raw = bytearray(base64.urlsafe_b64decode(state))
    raw[-3] ^= 1
    return base64.urlsafe_b64encode(raw).decode()


async def refused(reply: Reply) -> Any:
    """The body without the id."""
    assert reply.status == 400
    body = await reply.json()
    assert body.pop("id") == "r"
    assert body["error"]["code"] == -32602
    return body


async def retried(client: StatelessClient, state: str, name: str = "interview", **arguments: Any) -> Any:
    responses = dict.fromkeys(("elicitation", "name"), ACCEPTED)
    params = {**called(name, **arguments), "inputResponses": responses, "requestState": state}
    return await refused(await client.ask(CALL, params, ident="r"))


@on_loop
async def test_a_state_that_is_not_of_this_call_is_refused_alike_and_has_no_effect(gateway: Gateway) -> None:
    client, other = StatelessClient(gateway), StatelessClient(gateway, "stage", OTHER_TOKEN)
    elsewhere = StatelessClient(gateway, "other")
    mine: dict[str, Any] = {"rounds": [["form"], ["form"]], "nonce": "n"}
    asks = await client.asked("interview", **mine)
    state = asks["requestState"]
    bodies = [
        await retried(client, tampered(state), **mine),
        await retried(client, "garbage", **mine),
        await retried(client, "", **mine),
        await retried(client, state + "=", **mine),
        await retried(other, state, **mine),
        await retried(client, state, rounds=mine["rounds"], nonce="m"),
        await retried(client, state, name="echo", nonce="n"),
    ]
    strange = await retried(elsewhere, state, **mine)
    assert strange["error"]["data"].pop("server") == "other"
    second = (await client.retry(asks, answers(asks), "interview", **mine))["result"]
    bodies.append(await retried(client, state, **mine))
    answer = await client.retry(second, answers(second), "interview", **mine)
    assert len(json.loads(said(answer))["said"]) == 2
    bodies += [await retried(client, each, **mine) for each in (state, second["requestState"])]
    assert all(body == bodies[0] for body in bodies), bodies
    assert bodies[0]["error"]["data"].pop("server") == "stage"
    assert strange == bodies[0]


@pytest.mark.parametrize("wrong", [None, "yes", 7, [], True])
@on_loop
async def test_answers_that_cannot_be_read_leave_the_state_as_it_was(gateway: Gateway, wrong: Any) -> None:
    client = StatelessClient(gateway)
    asks = await client.asked("interview", rounds=[["form"]])
    params = {**called("interview", rounds=[["form"]]), "requestState": asks["requestState"]}
    for responses in (wrong, dict.fromkeys(asks["inputRequests"], wrong)):
        await refused(await client.ask(CALL, {**params, "inputResponses": responses}, ident="r"))
    assert "accept" in said(await client.retry(asks, answers(asks), "interview", rounds=[["form"]]))


@on_loop
async def test_of_two_retries_at_once_one_goes_on_and_one_is_refused(gateway: Gateway) -> None:
    client = StatelessClient(gateway)
    asks = await client.asked("ask_then_sleep", what="form", seconds=0.5)
    params = {**called("ask_then_sleep", what="form", seconds=0.5), "requestState": asks["requestState"]}
    params["inputResponses"] = answers(asks)
    first = await client.ask(CALL, params, ident="f")
    body = await refused(await client.ask(CALL, params, ident="r"))
    assert body["error"]["data"]["reason"] == "state_unknown"
    assert "slept" in said(await client.settle(first))


@on_loop
async def test_a_call_that_nobody_comes_back_for_is_cancelled_and_its_child_stopped(hasty: Gateway) -> None:
    client = StatelessClient(hasty)
    pid = int(await client.tool("pid"))
    asks = await client.asked("interview", rounds=[["form"]])
    assert pid in hasty.children()
    assert eventually(lambda: pid not in hasty.children(), PARK + 3)
    body = await retried(client, asks["requestState"], rounds=[["form"]])
    assert body["error"]["data"]["reason"] == "state_unknown"
    assert int(await client.tool("pid")) != pid


# Children.


@on_loop
async def test_two_parked_calls_of_one_principal_are_on_two_children(gateway: Gateway) -> None:
    client = StatelessClient(gateway)
    first = await client.asked("interview", rounds=[["form"]], nonce="one")
    second = await client.asked("interview", rounds=[["roots"]], nonce="two")
    assert await client.tool("echo", nonce="a third") == "a third"
    for asks, rounds, nonce in ((second, [["roots"]], "two"), (first, [["form"]], "one")):
        answer = await client.retry(asks, answers(asks), "interview", rounds=rounds, nonce=nonce)
        assert json.loads(said(answer))["nonce"] == nonce


@on_loop
async def test_a_child_serves_one_call_after_the_other(gateway: Gateway) -> None:
    client = StatelessClient(gateway)
    pid = await client.tool("pid")
    asks = await client.asked("interview", rounds=[["form"]])
    await client.retry(asks, answers(asks), "interview", rounds=[["form"]])
    assert await client.tool("pid") == pid
    assert await StatelessClient(gateway, "stage", OTHER_TOKEN).tool("pid") != pid


@on_loop
async def test_children_that_nobody_uses_are_stopped(hasty: Gateway) -> None:
    pid = int(await StatelessClient(hasty).tool("pid"))
    assert pid in hasty.children()
    assert eventually(lambda: pid not in hasty.children(), IDLE + 3)


@on_loop
async def test_a_question_that_no_retry_is_known_for_by_url_begins_the_call_anew(gateway: Gateway) -> None:
    client = StatelessClient(gateway)
    asks = await client.asked("url_first")
    [question] = asks["inputRequests"].values()
    assert (question["method"], question["params"]["mode"]) == ("elicitation/create", "url")
    assert "elicitationId" not in question["params"]
    assert said(await client.retry(asks, {"q1": {"action": "accept"}}, "url_first")) == "visited"


# Log messages.


@on_loop
async def test_log_messages_reach_only_the_call_that_asked_and_from_its_level_on(gateway: Gateway) -> None:
    client = StatelessClient(gateway, "stage", capabilities={})
    quiet = await client.ask(CALL, called("progress", n=3, interval=0.1), ident="q", progressToken=1)
    loud = await client.ask(CALL, called("log", level="error", tag="mine", n=2), ident="l", logLevel="warning")
    heard = [message async for message in loud.messages()]
    assert [message["params"]["data"]["tag"] for message in heard[:-1]] == ["mine", "mine"]
    assert heard[-1]["id"] == "l"
    assert {message.get("method") for message in [m async for m in quiet.messages()][:-1]} == {"notifications/progress"}
    low = await client.ask(CALL, called("log", level="info", n=2), ident="x", logLevel="warning")
    assert (low.headers["content-type"], (await low.json())["id"]) == ("application/json", "x")
    none = await client.ask(CALL, called("log", level="emergency", n=2), ident="y")
    assert (none.headers["content-type"], (await none.json())["id"]) == ("application/json", "y")
