"""A full round of the official clients that know both eras, in every mode, with servers of either era.

The mixed pairs lose nothing: what a server asks, reports, logs and announces comes to the client's own callbacks.
"""

import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import TypeVar

import pytest

from tests.conformance.served import gateway
from tests.real import installed
from tests.real.conftest import TOKEN, Served
from tests.real.driving import Findings, Step, drive, questions, texts
from tests.real.installed import VISITORS, Visitor
from tests.real.rounds import ELICIT, EVERYTHING, FIRST, FIXTURE, PAGE, ROOTS, ROUNDS, SAMPLE, Round

pytestmark = [pytest.mark.registry, pytest.mark.slow]


STATELESS = [visitor for visitor in VISITORS if visitor.is_stateless]


@dataclass(frozen=True)
class Visit:
    visitor: Visitor
    round_: Round
    found: Findings

    @property
    def root(self) -> str:
        return f"file:///srv/{self.visitor}"


Pay = Callable[[Visitor, Round], Visit]
Test = TypeVar("Test", bound=Callable[..., object])


@pytest.fixture(scope="module")
def pay(served: Served) -> Pay:
    """Pays each visit once, however many tests look at what it found."""
    paid: dict[tuple[Visitor, str], Visit] = {}

    def once(visitor: Visitor, round_: Round) -> Visit:
        if (visitor, round_.server) not in paid:
            job = served.visit(visitor, round_.server) | {"roots": [{"uri": f"file:///srv/{visitor}", "name": "a"}]}
            found = drive(visitor.client, job, Step("greeting", "greeting"), Step("lists", "lists"), *round_.steps)
            paid[visitor, round_.server] = Visit(visitor, round_, found)
        return paid[visitor, round_.server]

    return once


@pytest.fixture
def visit(pay: Pay, visitor: Visitor, round_: Round) -> Visit:
    return pay(visitor, round_)


def visits(*rounds: Round) -> Callable[[Test], Test]:
    """Of every visitor to the servers of these rounds."""

    def of(test: Test) -> Test:
        by_round = pytest.mark.parametrize("round_", rounds, ids=lambda round_: round_.server)
        marked: Test = pytest.mark.parametrize("visitor", VISITORS, ids=str)(by_round(test))
        return marked

    return of


@visits(EVERYTHING, ROUNDS, FIXTURE, FIRST)
def test_the_client_speaks_the_revision_that_it_chose_and_knows_the_server(visit: Visit) -> None:
    greeting = visit.found["greeting"]
    assert greeting["protocolVersion"] == ("2026-07-28" if visit.visitor.is_stateless else "2025-11-25")
    info = greeting["serverInfo"]
    assert info.get("title", info["name"]) == visit.round_.title
    assert greeting["capabilities"]["resources"]["subscribe"] is True


@visits(EVERYTHING, ROUNDS, FIXTURE, FIRST)
def test_what_is_offered_is_listed_and_called_and_read(visit: Visit) -> None:
    found, says = visit.found, visit.round_.says
    assert visit.round_.tools <= set(found["lists"]["tools"])
    assert texts(found["echo"]) == says["echo"]
    assert found["prompt"]["messages"][0]["content"]["text"] == says["prompt"]
    assert found["resource"]["contents"][0]["text"].startswith(says["resource"])
    assert tuple(found["completion"]["completion"]["values"]) == visit.round_.completed


@visits(EVERYTHING, ROUNDS, FIXTURE, FIRST)
def test_a_form_is_asked_for_and_its_answer_reaches_the_tool(visit: Visit) -> None:
    [question] = questions(visit.found["form"], ELICIT)
    assert question["requestedSchema"]["properties"]
    assert visit.round_.says["form"] in texts(visit.found["form"]["result"])


@visits(EVERYTHING, ROUNDS)
def test_a_url_is_asked_for(visit: Visit) -> None:
    [question] = questions(visit.found["url"], ELICIT)
    assert (question["mode"], question["url"]) == ("url", PAGE)
    assert visit.round_.says["url"] in texts(visit.found["url"]["result"])


@pytest.mark.parametrize("round_", [EVERYTHING], ids=lambda round_: round_.server)
@pytest.mark.parametrize("visitor", STATELESS, ids=str)
def test_an_error_that_wants_a_url_visited_first_becomes_a_question(visit: Visit) -> None:
    asked = questions(visit.found["url first"], ELICIT)
    assert [question["url"] for question in asked] == ["https://modelcontextprotocol.io", PAGE]
    assert visit.round_.says["url"] in texts(visit.found["url first"]["result"])


@visits(EVERYTHING, ROUNDS, FIXTURE, FIRST)
def test_a_sample_is_asked_for_and_its_answer_reaches_the_tool(visit: Visit) -> None:
    [question] = questions(visit.found["sampling"], SAMPLE)
    assert question["messages"][0]["content"]["text"].endswith("say it")
    assert visit.round_.says["sampling"] in texts(visit.found["sampling"]["result"])


@visits(EVERYTHING, ROUNDS, FIXTURE, FIRST)
def test_the_clients_own_roots_reach_the_tool(visit: Visit) -> None:
    assert visit.root in texts(visit.found["roots"]["result"])


@visits(EVERYTHING, ROUNDS, FIXTURE, FIRST)
def test_progress_arrives_in_order_before_the_result(visit: Visit) -> None:
    progress = visit.found["progress"]
    assert tuple(report["progress"] for report in progress["progress"]) == visit.round_.reports
    assert texts(progress["result"]).startswith(visit.round_.says["progress"]) or "completed" in texts(
        progress["result"]
    )


@visits(EVERYTHING, ROUNDS, FIXTURE, FIRST)
def test_what_a_call_logs_comes_from_the_asked_level_on(visit: Visit) -> None:
    assert visit.round_.says["log"] in texts(visit.found["log"]["result"])
    if visit.round_ is EVERYTHING:  # what it says, and at which level, is random
        assert len(visit.found["log"]["logged"]) == 1
        return
    assert _logged(visit, "log") == visit.round_.logged
    assert _logged(visit, "log of errors") == tuple(said for said in visit.round_.logged if said[0] == "error")


@pytest.mark.parametrize("round_", [ROUNDS, FIXTURE, FIRST], ids=lambda round_: round_.server)
@pytest.mark.parametrize("visitor", STATELESS, ids=str)
def test_a_stateless_call_that_asked_for_no_log_messages_gets_none(visit: Visit) -> None:
    assert visit.round_.says["log"] in texts(visit.found["no log"]["result"])
    assert _logged(visit, "no log") == ()


def _logged(visit: Visit, step: str) -> tuple[tuple[str, str], ...]:
    return tuple((said["level"], said["data"]) for said in visit.found[step]["logged"])


@visits(EVERYTHING, ROUNDS, FIXTURE, FIRST)
def test_a_subscriber_is_told_of_updates_and_of_lists(visit: Visit) -> None:
    updated = visit.found["subscription"]["updated"]
    assert updated == {"method": "notifications/resources/updated", "params": {"uri": visit.round_.watched}}
    assert visit.found["list change"]["updated"]["method"] == visit.round_.changed


@visits(EVERYTHING, ROUNDS)
def test_closing_a_call_cancels_it_and_nothing_of_it_comes_after(visit: Visit) -> None:
    cancel = visit.found["cancel"]
    assert cancel["rejected"]
    assert [report["progress"] for report in cancel["progress"]] == [1, 2]
    assert cancel["complaints"] == []
    assert [report["progress"] for report in cancel["next"]["progress"]] == [1, 2]


@visits(ROUNDS)
def test_the_server_hears_of_the_cancellation(visit: Visit) -> None:
    assert texts(visit.found["cancelled"]) == "cancelled: 30 s"


@visits(ROUNDS)
def test_a_server_asks_again_with_what_it_was_answered(visit: Visit) -> None:
    asked = questions(visit.found["two rounds"], ELICIT)
    assert [question["message"] for question in asked] == ["Who are you?", "What is the pet of Ada called?"]
    assert texts(visit.found["two rounds"]["result"]) == "Ada and Rex"
    assert texts(visit.found["declined"]["result"]) == "decline"


@visits(ROUNDS)
def test_questions_of_three_kinds_are_answered_in_one_round(visit: Visit) -> None:
    asked = visit.found["all at once"]["asked"]
    assert {question["method"] for question in asked} == {ELICIT, SAMPLE, ROOTS}
    assert texts(visit.found["all at once"]["result"]) == "Ada in 1 place said said to say it"


@pytest.mark.parametrize("round_", [EVERYTHING, ROUNDS], ids=lambda round_: round_.server)
@pytest.mark.parametrize("visitor", STATELESS, ids=str)
def test_twenty_clients_at_once_each_get_their_own_answers(served: Served, visitor: Visitor, round_: Round) -> None:
    found = drive(visitor.client, served.visit(visitor, round_.server), Step("many", "many", {"count": 20, "calls": 4}))
    assert found["many"] == [[f"Echo: session {session} call {call}" for call in range(4)] for session in range(20)]


@pytest.fixture(scope="module")
def run_port(tmp_path_factory: pytest.TempPathFactory) -> Iterator[int]:
    """One server that speaks both eras, as its first request decides, and no file needed."""
    installed.require()
    command = ("--", sys.executable, str(installed.HERE / "servers/modern.py"))
    with gateway(tmp_path_factory.mktemp("run"), "run", "--port", "0", "--token", TOKEN, *command) as port:
        yield port


@pytest.mark.parametrize("visitor", VISITORS, ids=str)
def test_a_server_of_both_eras_is_met_in_the_clients_own(run_port: int, visitor: Visitor) -> None:
    url = f"http://127.0.0.1:{run_port}/mcp"
    job = {"transport": "http", "mode": visitor.mode, "url": url, "token": TOKEN}
    found = drive(visitor.client, job, Step("greeting", "greeting"), *ROUNDS.steps[:5])
    assert found["greeting"]["protocolVersion"] == ("2026-07-28" if visitor.is_stateless else "2025-11-25")
    assert texts(found["echo"]) == ROUNDS.says["echo"]
    assert texts(found["form"]["result"]) == ROUNDS.says["form"]
    assert texts(found["two rounds"]["result"]) == "Ada and Rex"
