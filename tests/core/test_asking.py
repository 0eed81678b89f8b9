"""The questions of many servers to one client, which knows each by a number of ours."""

import pytest

from app.core.asking import Asking
from app.core.ledger import too_many_questions
from app.core.partner import ToServer
from app.core.probing import ToSession
from app.protocol import methods
from app.protocol.jsonrpc import Failure, Notification, Reply, Request, RequestId, Result, failure, payload
from tests.core.inventories import raw

ROOTS = "roots/list"


def progress(token: RequestId) -> Notification:
    return Notification(methods.PROGRESS, payload({"progressToken": token, "progress": 1}))


def test_two_servers_may_use_one_id_and_each_is_answered() -> None:
    asking = Asking(10)
    assert asking.asked("a", Request("x", ROOTS), None) == ToSession(Request(1, ROOTS))
    assert asking.asked("b", Request("x", ROOTS), 7) == ToSession(Request(2, ROOTS), 7)
    result, failed = Result(2, payload({"roots": []})), Failure(1, payload({"code": 1, "message": ""}))
    assert asking.answered(result) == ("b", Result("x", result.result))
    assert asking.answered(failed) == ("a", Failure("x", failed.error))


def test_what_was_asked_is_asked_of_the_client_as_it_was() -> None:
    params = raw({"messages": [{"x": 1.00}]})
    assert Asking(10).asked("a", Request(5, "sampling/createMessage", params), None) == ToSession(
        Request(1, "sampling/createMessage", params)
    )


@pytest.mark.parametrize("reply", [Result(1, payload({})), Failure(1, payload({})), Failure(None, payload({}))])
def test_an_answer_counts_once_and_only_to_a_question(reply: Reply) -> None:
    asking = Asking(10)
    assert asking.answered(reply) is None
    asking.asked("a", Request(9, ROOTS), None)
    answered = asking.answered(reply)
    assert answered is None if reply.id is None else answered is not None
    assert asking.answered(reply) is None


def test_an_answer_is_to_the_number_and_not_to_the_text_of_it() -> None:
    asking = Asking(10)
    asking.asked("a", Request(9, ROOTS), None)
    assert asking.answered(Result("1", payload({}))) is None


def test_too_many_questions_are_refused_until_some_are_answered() -> None:
    asking = Asking(1)
    asking.asked("a", Request(1, ROOTS), None)
    assert asking.asked("b", Request(2, ROOTS), None) == ToServer("b", failure(2, too_many_questions()))
    asking.answered(Result(1, payload({})))
    assert asking.asked("b", Request(2, ROOTS), None) == ToSession(Request(2, ROOTS))


def test_progress_on_a_question_goes_to_who_asked_under_its_own_token() -> None:
    asking = Asking(10)
    for server in ("a", "b"):
        said = raw({"_meta": {"progressToken": "t"}})
        asked = asking.asked(server, Request(1, ROOTS, said), None)
        assert isinstance(asked, ToSession)
    assert asked.message == Request(2, ROOTS, payload({"_meta": {"progressToken": 2}}))
    assert asking.reported(progress(2)) == ("b", progress("t"))
    assert asking.reported(progress(1)) == ("a", progress("t"))
    asking.answered(Result(2, payload({})))
    assert asking.reported(progress(2)) is None


@pytest.mark.parametrize("token", [1, 2, "1"])
def test_progress_that_nobody_asked_for_is_nobodys(token: RequestId) -> None:
    asking = Asking(10)
    asking.asked("a", Request(1, ROOTS), None)
    assert asking.reported(progress(token)) is None
    assert asking.reported(Notification(methods.PROGRESS, payload({"progress": 1}))) is None


def test_a_question_is_taken_back_by_who_asked_it_and_by_its_very_id() -> None:
    asking = Asking(10)
    for server, ident in (("a", 1), ("b", "1"), ("b", 1)):
        asking.asked(server, Request(ident, ROOTS), None)
    taken_back = asking.withdrawn("b", methods.cancellation(1, "why"))
    assert taken_back == ToSession(methods.cancellation(3, "why"))
    assert asking.withdrawn("b", methods.cancellation(1, "why")) is None
    assert asking.withdrawn("c", methods.cancellation(1, "why")) is None
    assert asking.withdrawn("a", Notification(methods.CANCELLED, payload({}))) is None
    assert asking.answered(Result(3, payload({}))) is None
    assert asking.answered(Result(1, payload({}))) == ("a", Result(1, payload({})))


def test_the_questions_of_a_server_that_is_gone_lapse_and_no_others() -> None:
    asking = Asking(10)
    for server in ("a", "b", "a"):
        asking.asked(server, Request(1, ROOTS), None)
    gone = "the server that asked is gone"
    assert list(asking.lapsed("a")) == [ToSession(methods.cancellation(number, gone)) for number in (1, 3)]
    assert list(asking.lapsed("a")) == []
    assert asking.answered(Result(1, payload({}))) is None
    assert asking.answered(Result(2, payload({}))) == ("b", Result(1, payload({})))
