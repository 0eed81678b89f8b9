"""Which HTTP status says what went wrong with a stateless request."""

import json

import pytest
from msgspec import Raw

from app.edge.refusals import refused, status_of
from app.protocol import faults
from app.protocol.faults import GatewayFault
from app.protocol.jsonrpc import Failure, Request, Result, failure
from app.protocol.stateless import envelope

REFUSED: dict[str, tuple[GatewayFault, int, int]] = {
    "a header that says something else": (faults.HeaderMismatch("why"), 400, -32020),
    "a capability that was not declared": (faults.MissingCapability("why", {"roots": {}}), 400, -32021),
    "a revision that is not served": (faults.UnsupportedRevision("why", "1", ("2",)), 400, -32022),
    "a method that was removed": (faults.UnknownMethod("why"), 404, -32601),
    "a parameter that is missing": (faults.BadParams("why"), 400, -32602),
}


@pytest.mark.parametrize(("fault", "status", "code"), REFUSED.values(), ids=REFUSED)
def test_a_request_that_is_not_accepted_has_the_status_of_its_fault(
    fault: GatewayFault, status: int, code: int
) -> None:
    fault.answers = 7
    said, headers, body = refused(fault)
    assert (said, headers) == (status, [(b"content-type", b"application/json")])
    answer = json.loads(body)
    assert (answer["id"], answer["error"]["code"]) == (7, code)
    assert answer["error"]["data"] == fault.data()


@pytest.mark.parametrize("params", [None, b"{}", b'{"_meta":{}}', b'{"_meta":5}'])
def test_a_request_without_its_meta_is_400(params: bytes | None) -> None:
    with pytest.raises(faults.BadParams) as missing:
        envelope(Request(7, "server/discover", None if params is None else Raw(params)))
    status, _, body = refused(missing.value)
    error = json.loads(body)["error"]
    assert (status, error["code"], error["data"]["reason"]) == (400, -32602, "meta_missing")


def test_a_result_is_200() -> None:
    assert status_of(Result(7, Raw(b"{}"))) == 200


@pytest.mark.parametrize(
    ("code", "status"),
    [(-32601, 404), (-32020, 400), (-32021, 400), (-32022, 400), (-32602, 200), (-32603, 200), (-31001, 200), (5, 200)],
)
def test_an_error_that_comes_first_sets_the_status_whoever_raised_it(code: int, status: int) -> None:
    error = json.dumps({"code": code, "message": "the server's own", "data": {"x": 1}}).encode()
    assert status_of(Failure(7, Raw(error))) == status


@pytest.mark.parametrize(("fault", "status", "code"), REFUSED.values(), ids=REFUSED)
def test_a_fault_of_ours_that_comes_first_is_judged_by_its_code(fault: GatewayFault, status: int, code: int) -> None:
    assert status_of(failure(7, fault)) == (200 if code == -32602 else status)


def test_a_missing_scope_is_a_challenge_with_all_that_are_needed() -> None:
    fault = faults.InsufficientScope("why", ("read", "write"))
    status, headers, body = refused(fault)
    challenge = (b"www-authenticate", b'Bearer error="insufficient_scope", scope="read write"')
    assert (status, challenge in headers) == (403, True)
    assert json.loads(body)["error"]["data"]["scopes"] == ["read", "write"]


def test_who_is_told_to_wait_waits_long_enough() -> None:
    _, headers, _ = refused(faults.Overloaded("why", reason="policy_limit", retry_after=1.2))
    assert (b"retry-after", b"2") in headers
