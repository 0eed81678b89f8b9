"""What becomes of a request that was judged before it came to the session."""

from msgspec import Raw

from app.core.effects import EndStream, ToClient, ToUpstream
from app.core.judged import Judged
from app.core.session import Session
from app.protocol.faults import BadParams
from app.protocol.jsonrpc import Failure, Notification, Request, Result, failure
from tests.core.sessions import ask, call, post, raw

DENIED = BadParams("unknown tool 'x'", reason="unknown_target")


def denied(ident: int) -> Judged:
    return Judged(ident, "tools/call", raw('{"name":"x"}'), fault=DENIED)


def sieve(result: Raw) -> Raw:
    return raw('"sifted"')


def test_a_denied_request_is_answered_as_by_its_server_which_never_hears_of_it(session: Session) -> None:
    assert ask(session, denied(7), 2) == [ToClient(2, failure(7, DENIED)), EndStream(2)]
    assert not session.is_busy


def test_a_denied_member_of_a_batch_leaves_the_others_alone(session: Session) -> None:
    post(session, 2)
    effects = session.ask_all([denied(1), call(2)], 2, 0.0)
    assert effects[0] == ToClient(2, failure(1, DENIED))
    assert isinstance(effects[1], ToUpstream)
    assert len(effects) == 2
    assert session.deliver(Result(101, raw("{}")), 0.1) == [ToClient(2, Result(2, raw("{}"))), EndStream(2)]


def test_a_result_is_sifted_and_a_failure_is_not(session: Session) -> None:
    ask(session, Judged(1, "tools/list", sieve=sieve), 2)
    assert session.deliver(Result(101, raw("{}")), 0.1) == [ToClient(2, Result(1, raw('"sifted"'))), EndStream(2)]
    ask(session, Judged(1, "tools/list", sieve=sieve), 3)
    assert session.deliver(Failure(102, raw("{}")), 0.1) == [ToClient(3, Failure(1, raw("{}"))), EndStream(3)]


def test_of_two_calls_with_one_id_each_is_sifted_by_its_own_sieve(session: Session) -> None:
    ask(session, Judged(1, "tools/list", sieve=sieve), 2)
    ask(session, Request(1, "tools/list"), 3)
    assert session.deliver(Result(102, raw("{}")), 0.1) == [ToClient(3, Result(1, raw("{}"))), EndStream(3)]
    assert session.deliver(Result(101, raw("{}")), 0.1) == [ToClient(2, Result(1, raw('"sifted"'))), EndStream(2)]


def test_what_goes_to_the_server_is_a_plain_request(session: Session) -> None:
    effects = ask(session, Judged(1, "tools/list", sieve=sieve), 2)
    assert effects == [ToUpstream(Request(101, "tools/list"))]
    assert type(effects[0].message) is Request  # type: ignore[union-attr]
    assert session.tell(Notification("notifications/x"), 0.1) == [ToUpstream(Notification("notifications/x"))]
