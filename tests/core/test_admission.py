"""A stateless request is served when its headers say what its body says, and refused for the first thing wrong."""

import json

import pytest
from msgspec import Raw

from app.core.admission import Admission, admit
from app.protocol.faults import BadParams, ClientFault, HeaderMismatch, UnknownMethod, UnsupportedRevision
from app.protocol.jsonrpc import Request
from app.protocol.revisions import SERVED
from app.protocol.stateless import CAPABILITIES_KEY, LOG_LEVEL_KEY, REMOVED, VERSION_KEY

VERSION = "2026-07-28"
Headers = dict[bytes, bytes]


def request(method: str, *, version: str = VERSION, level: str | None = None, **params: object) -> Request:
    meta = {VERSION_KEY: version, CAPABILITIES_KEY: {}} | ({} if level is None else {LOG_LEVEL_KEY: level})
    return Request(7, method, Raw(json.dumps({**params, "_meta": meta}).encode()))


def headers(method: str, name: str | None = None, version: str = VERSION) -> Headers:
    said = {b"mcp-protocol-version": version.encode(), b"mcp-method": method.encode()}
    return said if name is None else {**said, b"mcp-name": name.encode()}


def judged(asked: Request, said: Headers) -> Request:
    """By a head that is new, and by it once more, when it is known."""
    admission = Admission(said)
    admitted = admission.admit(asked)
    assert admission.admit(asked) == admitted == admit(asked, said)
    return admitted


def refusal(asked: Request, said: Headers) -> ClientFault:
    with pytest.raises(ClientFault) as refused:
        judged(asked, said)
    return refused.value


TARGETS = {
    "tools/call": "name",
    "prompts/get": "name",
    "resources/read": "uri",
    "tasks/get": "taskId",
    "tasks/update": "taskId",
    "tasks/cancel": "taskId",
}


def test_a_request_that_its_headers_mirror_is_admitted() -> None:
    asked = request("tools/list", cursor="2")
    admitted = judged(asked, headers("tools/list"))
    assert (admitted.id, admitted.method) == (7, "tools/list")
    assert json.loads(bytes(admitted.params or b"")) == json.loads(bytes(asked.params or b""))


@pytest.mark.parametrize(("method", "member"), TARGETS.items())
def test_a_target_is_mirrored_by_its_name(method: str, member: str) -> None:
    asked = request(method, **{member: "one"})
    assert judged(asked, headers(method, "one")).method == method
    for said in (headers(method), headers(method, "two"), headers(method, "One"), headers(method, "")):
        assert type(refusal(asked, said)) is HeaderMismatch


@pytest.mark.parametrize(("method", "member"), TARGETS.items())
@pytest.mark.parametrize("params", [{}, {"other": "one"}, {"target": None}, {"target": 1}, {"target": ["one"]}])
def test_a_target_that_the_body_does_not_name_is_mirrored_by_nothing(
    method: str, member: str, params: dict[str, object]
) -> None:
    asked = request(method, **{member if key == "target" else key: value for key, value in params.items()})
    assert type(refusal(asked, headers(method))) is BadParams
    assert type(refusal(asked, headers(method, "one"))) is HeaderMismatch


def test_the_name_of_a_method_without_target_is_not_judged() -> None:
    assert judged(request("tools/list", name="one"), headers("tools/list", "two")).method == "tools/list"


def test_a_name_outside_of_ascii_comes_in_base64() -> None:
    asked = request("tools/call", name="世界")
    assert judged(asked, headers("tools/call", "=?base64?5LiW55WM?=")).method == "tools/call"
    assert type(refusal(asked, headers("tools/call", "世界"))) is HeaderMismatch


def test_space_around_a_value_is_none_of_it() -> None:
    said = {b"mcp-protocol-version": b" 2026-07-28\t", b"mcp-method": b" tools/call ", b"mcp-name": b"  one  "}
    assert judged(request("tools/call", name="one"), said).method == "tools/call"


MISMATCHES: dict[str, Headers] = {
    "no header at all": {},
    "no version": {b"mcp-method": b"tools/list"},
    "another version": headers("tools/list", version="2025-11-25"),
    "a version in Base64": headers("tools/list", version="=?base64?MjAyNi0wNy0yOA==?="),
    "no method": {b"mcp-protocol-version": b"2026-07-28"},
    "another method": headers("prompts/list"),
    "a method in other case": headers("TOOLS/LIST"),
    "a method in Base64": headers("=?base64?dG9vbHMvbGlzdA==?="),
    "a method with an invalid character": headers("tools/list\x00"),
    "an empty method": headers(""),
}


@pytest.mark.parametrize("said", MISMATCHES.values(), ids=MISMATCHES)
def test_a_header_that_does_not_mirror_the_body_is_refused(said: Headers) -> None:
    assert type(refusal(request("tools/list"), said)) is HeaderMismatch


@pytest.mark.parametrize("version", ["v999.0.0", "2099-01-01", "", "2024-11-05", "2025-11-25"])
def test_a_revision_that_is_not_served_so_is_refused_with_those_that_are(version: str) -> None:
    wrong = refusal(request("tools/list", version=version), headers("tools/list", version=version))
    assert type(wrong) is UnsupportedRevision
    assert wrong.details == {"supported": list(SERVED), "requested": version}


def test_every_revision_is_among_those_that_are_served_and_the_stateless_one_comes_first() -> None:
    assert SERVED == ("2026-07-28", "2025-11-25", "2025-06-18", "2025-03-26", "2024-11-05")


def test_that_header_and_body_disagree_is_said_before_that_neither_is_served() -> None:
    for body, header in (("v999.0.0", VERSION), (VERSION, "v999.0.0"), ("v1", "v2")):
        asked = request("tools/list", version=body)
        assert type(refusal(asked, headers("tools/list", version=header))) is HeaderMismatch
    assert type(refusal(request("tools/list", version="v1"), {b"mcp-method": b"tools/list"})) is HeaderMismatch


def test_a_revision_that_is_not_served_may_mirror_what_it_likes() -> None:
    asked = request("tools/call", version="2099-01-01", name="one")
    assert type(refusal(asked, {b"mcp-protocol-version": b"2099-01-01"})) is UnsupportedRevision


@pytest.mark.parametrize("method", sorted(REMOVED))
def test_a_method_that_the_revision_removed_is_unknown(method: str) -> None:
    assert type(refusal(request(method), headers(method))) is UnknownMethod
    assert type(refusal(request(method), headers("tools/list"))) is HeaderMismatch


def test_a_method_that_nobody_knows_is_the_servers_to_judge() -> None:
    assert judged(request("unknown/method"), headers("unknown/method")).method == "unknown/method"


@pytest.mark.parametrize("level", ["debug", "info", "notice", "warning", "error", "critical", "alert", "emergency"])
def test_a_level_of_the_log_is_taken(level: str) -> None:
    assert judged(request("tools/list", level=level), headers("tools/list")).method == "tools/list"


@pytest.mark.parametrize("level", ["DEBUG", "trace", "warn", " info"])
def test_a_level_that_is_none_is_refused(level: str) -> None:
    assert type(refusal(request("tools/list", level=level), headers("tools/list"))) is BadParams


def test_of_a_member_that_is_there_twice_goes_on_what_was_judged() -> None:
    meta = b'{"%b":"old","%b":"2026-07-28","%b":{}}' % (b"%b", VERSION_KEY.encode(), CAPABILITIES_KEY.encode())
    text = b'{"name":"one", "x": 1.50, "name":"two","_meta":' + meta % VERSION_KEY.encode() + b"}"
    asked = Request(7, "tools/call", Raw(text))
    admitted = judged(asked, headers("tools/call", "two"))
    wanted = b'{"name":"two","x":1.50,"_meta":{"%b":"2026-07-28","%b":{}}}'
    assert bytes(admitted.params or b"") == wanted % (VERSION_KEY.encode(), CAPABILITIES_KEY.encode())
    assert type(refusal(asked, headers("tools/call", "one"))) is HeaderMismatch


def test_no_value_of_a_client_is_in_what_it_is_told() -> None:
    for said in (headers("tools/call", "secret-1"), headers("secret-1"), headers("tools/call", "=?base64?secret-1?=")):
        assert "secret" not in refusal(request("tools/call", name="secret-2"), said).message


# One head, many requests.


@pytest.mark.parametrize(
    "other",
    [
        request("tools/call", name="two"),
        request("tools/call"),
        request("tools/call", name=1),
        request("tools/call", name="one", version="2025-11-25"),
        request("tools/call", name="one", level="loud"),
        request("prompts/get", name="one"),
    ],
)
def test_what_a_head_admitted_says_nothing_of_another_request(other: Request) -> None:
    said = headers("tools/call", "one")
    admission = Admission(said)
    admission.admit(request("tools/call", name="one"))
    with pytest.raises(ClientFault) as refused:
        admission.admit(other)
    assert refused.value.message == refusal(other, said).message


def test_requests_of_one_head_keep_their_own_parameters() -> None:
    admission = Admission(headers("tools/call", "one"))
    for n in range(3):
        admitted = admission.admit(request("tools/call", name="one", arguments={"n": n}))
        assert json.loads(bytes(admitted.fields["arguments"])) == {"n": n}
        assert admitted.target == "one"
