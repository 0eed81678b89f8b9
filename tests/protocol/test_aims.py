"""What requests aim at and lists show: read once, and written back so that nobody reads another name there."""

from typing import Any

import pytest
from msgspec import Raw

from app.protocol import aims, methods, stateless
from app.protocol.faults import BadParams
from app.protocol.jsonrpc import Request


def asked(method: str, params: str | None) -> Request:
    return Request(1, method, None if params is None else Raw(params.encode()))


def aim(method: str, params: str) -> tuple[str, tuple[aims.Aim, ...]]:
    found = aims.aimed(asked(method, params))
    assert found is not None
    return bytes(found[0].params or b"").decode(), found[1]


@pytest.mark.parametrize(
    ("method", "params", "target"),
    [
        ("tools/call", '{"name":"a","arguments":{"x":1.0}}', ("tools", "a")),
        ("prompts/get", '{"name":"a"}', ("prompts", "a")),
        ("resources/read", '{"uri":"a:b"}', ("resources", "a:b")),
        ("resources/subscribe", '{"uri":"a:b"}', ("resources", "a:b")),
        ("resources/unsubscribe", '{"uri":"a:b"}', ("resources", "a:b")),
        ("completion/complete", '{"ref":{"type":"ref/prompt","name":"a"}}', ("prompts", "a")),
        ("completion/complete", '{"ref":{"type":"ref/resource","uri":"a:b"}}', ("resources", "a:b")),
        ("subscriptions/listen", '{"notifications":{"resourceSubscriptions":["a:b"]}}', ("resources", "a:b")),
    ],
)
def test_each_method_aims_at_what_it_names_and_goes_on_as_it_was(method: str, params: str, target: aims.Aim) -> None:
    assert aim(method, params) == (params, (target,))


def test_a_subscription_aims_at_all_its_resources() -> None:
    _, targets = aim("subscriptions/listen", '{"notifications":{"resourceSubscriptions":["a:","b:"]}}')
    assert targets == (("resources", "a:"), ("resources", "b:"))


@pytest.mark.parametrize(
    ("method", "params", "goes_on"),
    [
        ("tools/call", '{"name":"a","x":1,"name":"b"}', '{"name":"b","x":1}'),
        ("tools/call", '{"NAME":"a","name":"b","Name":"c"}', '{"name":"b"}'),
        ("tools/call", '{"n\\u0061me":"a"}', '{"name":"a"}'),
        ("tools/call", '{"name":"a","arguments":{},"Arguments":{"x":1}}', '{"name":"a","arguments":{}}'),
        ("prompts/get", '{"name":"a","ARGUMENTS":{"x":1}}', '{"name":"a"}'),
        ("resources/read", '{"uri":"a","URI":"b"}', '{"uri":"a"}'),
        (
            "completion/complete",
            '{"ref":{"type":"ref/prompt","name":"a","Name":"b","type":"ref/prompt"},"Ref":{}}',
            '{"ref":{"type":"ref/prompt","name":"a"}}',
        ),
        (
            "subscriptions/listen",
            '{"notifications":{"ResourceSubscriptions":["a"],"resourceSubscriptions":["b"]},"Notifications":{}}',
            '{"notifications":{"resourceSubscriptions":["b"]}}',
        ),
    ],
)
def test_what_goes_on_can_be_read_in_one_way(method: str, params: str, goes_on: str) -> None:
    assert aim(method, params)[0] == goes_on


@pytest.mark.parametrize(
    ("method", "params"),
    [("tools/call", None), ("tools/call", '{"name":1}'), ("tools/call", '{"Name":"a"}'), ("resources/read", "{}"),
     ("completion/complete", '{"ref":{"type":"x","name":"a"}}'), ("completion/complete", '{"ref":[]}'),
     ("subscriptions/listen", '{"notifications":[]}'),
     ("subscriptions/listen", '{"notifications":{"resourceSubscriptions":[1]}}')],
)  # fmt: skip
def test_what_names_no_target_is_refused(method: str, params: str | None) -> None:
    with pytest.raises(BadParams):
        aims.aimed(asked(method, params))


def test_of_methods_that_nobody_told_us_of_we_know_no_target() -> None:
    assert aims.aimed(asked("future/call", '{"name":"a"}')) is None
    assert not aims.is_known("future/call")


@pytest.mark.parametrize("method", sorted(methods.OF_HANDSHAKE | {stateless.DISCOVER, stateless.LISTEN}))
def test_every_method_that_we_know_has_its_aim_but_tasks_which_are_anybodys(method: str) -> None:
    assert aims.is_known(method) is not method.startswith("tasks/")


def test_no_other_spelling_of_what_is_listened_to_is_passed_on() -> None:
    for said in ('{"ResourceSubscriptions":["a:b"]}', '{"resourceSubscriptions":[],"RESOURCESUBSCRIPTIONS":["a:b"]}'):
        aimed = aims.aimed(asked("subscriptions/listen", f'{{"notifications":{said}}}'))
        assert aimed is not None
        assert aimed[1] == ()
        assert b"a:b" not in bytes(aimed[0].params or b"")


@pytest.mark.parametrize(("method", "is_request"), [("tools/call", True), ("initialized", False), ("x", True),
                                                    ("notifications/x", False)])  # fmt: skip
def test_a_notification_is_known_by_its_name(method: str, is_request: bool) -> None:
    assert aims.is_request(method) == is_request


# Lists.


def page(text: str, *seen: str) -> tuple[str, list[tuple[str, str]]]:
    said: list[tuple[str, str]] = []

    def may_see(name: str, whole: Raw) -> bool:
        said.append((name, bytes(whole).decode()))
        return name in seen

    shown = aims.shown(Raw(text.encode()), aims.LISTS["tools/list"], may_see)
    return bytes(shown).decode(), said


def test_a_list_keeps_what_may_be_seen_and_everything_beside_it() -> None:
    shown, said = page('{"tools":[{"name":"a","x":1.0},{"name":"b"}],"nextCursor":"c"}', "a")
    assert shown == '{"tools":[{"name":"a","x":1.0}],"nextCursor":"c"}'
    assert said == [("a", '{"name":"a","x":1.0}'), ("b", '{"name":"b"}')]


def test_a_name_in_a_list_can_be_read_in_one_way() -> None:
    shown, _ = page('{"tools":[{"name":"b","name":"a"},{"Name":"b","name":"a"}],"Tools":[{"name":"b"}]}', "a")
    assert shown == '{"tools":[{"name":"a"},{"name":"a"}]}'


@pytest.mark.parametrize("text", ["[]", '"secret"', '{"tools":"secret"}', '{"tools":[1,{"name":2},{}]}', "{}"])
def test_of_a_list_that_is_none_nothing_is_seen(text: str) -> None:
    assert page(text, "secret")[0] == '{"tools":[]}'


@pytest.mark.parametrize(
    ("said", "told"),
    [('{"cacheScope":"public","x":1}', '{"cacheScope":"private","x":1}'), ('{"x":1}', '{"x":1}'),
     ('{"cache\\u0053cope":"public"}', '{"cacheScope":"private"}'), ("[]", "[]")],
)  # fmt: skip
def test_what_was_sifted_for_one_is_not_to_be_shown_to_others(said: str, told: str) -> None:
    assert bytes(aims.private(Raw(said.encode()))).decode() == told


@pytest.mark.parametrize(
    ("tool", "read_only", "destructive"),
    [({"annotations": {"readOnlyHint": True}}, True, None), ({"annotations": {"destructiveHint": False}}, None, False),
     ({}, None, None), ({"annotations": {"readOnlyHint": "yes"}}, None, None), ({"annotations": []}, None, None)],
)  # fmt: skip
def test_annotations_of_the_wrong_kind_are_none(tool: Any, read_only: bool | None, destructive: bool | None) -> None:
    from app.protocol.jsonrpc import payload

    said = aims.annotations(payload(tool))
    assert (said.read_only, said.destructive) == (read_only, destructive)
