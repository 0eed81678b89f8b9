"""Connections that break in the middle of a stream: each official client comes back and has missed nothing."""

import pytest

from tests.real.conftest import Served
from tests.real.cutting import Cut, cutting
from tests.real.driving import Step, drive, questions, texts
from tests.real.installed import CLIENT, CLIENTS, SDK, Client

pytestmark = [pytest.mark.registry, pytest.mark.slow]

REPORTS = 8
LONG = {"name": "trigger-long-running-operation", "arguments": {"duration": 0.8, "steps": REPORTS}}
FORM = {
    "tool": {"name": "trigger-elicitation-request"},
    "answers": {"elicitation/create": {"action": "accept", "content": {"name": "Ada"}}},
}


@pytest.mark.parametrize("client", CLIENTS, ids=str)
def test_what_a_cut_connection_lost_comes_once_over_the_next(served: Served, client: Client) -> None:
    get_stream = Cut(b'"roots/list"', arrives=False)
    post_stream = Cut(b'"notifications/progress"', occurrence=3)
    question = Cut(b'"elicitation/create"')
    with cutting(served.port, get_stream, post_stream, question) as cutter:
        job = served.job("everything", "http", base=f"http://127.0.0.1:{cutter.port}")
        found = drive(
            client,
            job | {"roots": [{"uri": "file:///srv/a"}]},
            Step("roots", "hear", {"data": "Roots updated: 1 root(s)"}),
            Step("progress", "progress", LONG),
            Step("form", "ask", FORM),
        )
    assert found["roots"]["method"] == "notifications/message"
    assert [report["progress"] for report in found["progress"]["progress"]] == [*range(1, REPORTS + 1)]
    assert "completed" in texts(found["progress"]["result"])
    assert len(questions(found["form"], "elicitation/create")) == 1
    assert "- Name: Ada" in texts(found["form"]["result"])
    assert all(cut.is_done for cut in cutter.cuts)
    assert len(set(cutter.resumed_after)) >= len(cutter.cuts)


@pytest.mark.parametrize("client", [SDK, CLIENT], ids=str)
def test_a_token_fetches_the_result_over_a_new_connection(served: Served, client: Client) -> None:
    found = drive(client, served.job("everything", "http"), Step("resumed", "resume", LONG))
    assert "completed" in texts(found["resumed"]["result"])
