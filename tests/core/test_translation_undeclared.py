"""What a stateless child asks of a handshake client that did not declare it."""

from typing import Any

import pytest

from app.core.translation import Translation
from app.protocol.jsonrpc import Request, Result, payload
from tests.core.test_translation_calls import FORM, ROOTS, SAMPLE, URL, called, question
from tests.core.translations import asking, call, code, modern, raw, read

BARE = Request(1, "initialize", payload({"protocolVersion": "2025-11-25", "capabilities": {"elicitation": {}}}))


def bare() -> Translation:
    """The call of a client that takes forms and nothing else."""
    translation = modern(initialize=BARE)
    translation.submit(call(10), 0)
    return translation


def retried(outcomes: list[Any]) -> tuple[int, Any]:
    """The id of the only outcome, a retry, and its answers."""
    (sent,) = outcomes
    return sent.message.id, read(sent.message.params)["inputResponses"]


def test_an_elicitation_of_a_kind_that_the_client_did_not_declare_counts_as_dismissed() -> None:
    translation = bare()
    told = translation.receive(asking(10, {"a": URL, "b": FORM}), 0)
    assert told == [question(101, FORM, 10)]
    answers = translation.submit(Result(101, payload({"action": "decline"})), 0)
    assert retried(answers)[1] == {"a": {"action": "cancel"}, "b": {"action": "decline"}}


def test_a_server_that_asks_what_was_not_declared_again_and_again_is_answered_after_growing_pauses() -> None:
    translation = bare()
    ident, answers = retried(translation.receive(asking(10, {"a": URL}), 0))
    assert answers == {"a": {"action": "cancel"}}
    assert translation.receive(asking(ident, {"a": URL}), 0) == []
    assert translation.due == pytest.approx(0.1)
    ident, answers = retried(translation.tick(0.1))
    assert answers == {"a": {"action": "cancel"}}
    assert translation.receive(asking(ident, {"a": URL}), 0.1) == []
    assert translation.due == pytest.approx(0.3)


@pytest.mark.parametrize("undeclared", [SAMPLE, ROOTS])
def test_any_other_question_that_the_client_did_not_declare_fails_the_call(undeclared: dict[str, object]) -> None:
    assert code(bare().receive(asking(10, {"a": undeclared}), 0)) == (10, -32601)


@pytest.mark.parametrize("answer", ["null", "[1]", '"x"', "7"])
def test_an_answer_that_is_no_object_stands_for_none(answer: str) -> None:
    translation = called()
    translation.receive(asking(10, {"a": FORM}), 0)
    assert retried(translation.submit(Result(101, raw(answer)), 0))[1] == {"a": {"action": "cancel"}}
    translation = called()
    translation.receive(asking(10, {"a": SAMPLE}), 0)
    assert code(translation.submit(Result(101, raw(answer)), 0)) == (10, -32602)
