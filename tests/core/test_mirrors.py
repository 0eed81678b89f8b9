"""What a tool wants to be repeated in headers, and which calls do so."""

import json
from base64 import b64encode

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec import Raw

from app.core.mirrors import Invalid, Mirror, Mirrors, as_judged, check_call, check_mirrors, mirrors
from app.protocol.faults import HeaderMismatch
from app.protocol.stateless import Admitted, read_meta

Schema = dict[str, object]
Headers = dict[bytes, bytes]

REGION = {"type": "string", "x-mcp-header": "Region"}


def raw(value: object) -> Raw:
    return Raw(json.dumps(value).encode())


def listed(*tools: object) -> Raw:
    return raw({"tools": list(tools), "resultType": "complete"})


def read(schema: object) -> Mirrors:
    return mirrors(listed({"name": "one", "inputSchema": schema}))["one"]


def of(**properties: object) -> Schema:
    return {"type": "object", "properties": properties}


# What a tool says.

VALID: dict[str, tuple[object, Mirrors]] = {
    "nothing": (of(a={"type": "string"}), ()),
    "no schema at all": (None, ()),
    "text": (of(a=REGION), (Mirror(b"mcp-param-region", ("a",)),)),
    "a flag": (of(a={"type": "boolean", "x-mcp-header": "A"}), (Mirror(b"mcp-param-a", ("a",)),)),
    "a number": (of(a={"type": "integer", "x-mcp-header": "A"}), (Mirror(b"mcp-param-a", ("a",), is_integer=True),)),
    "below": (of(a=of(b=of(c=REGION))), (Mirror(b"mcp-param-region", ("a", "b", "c")),)),
    "below, where no type is said": ({"properties": {"a": {"properties": {"b": REGION}}}},
                                     (Mirror(b"mcp-param-region", ("a", "b")),)),
    "several": (of(a=REGION, b=of(c={**REGION, "x-mcp-header": "Zone"})),
                (Mirror(b"mcp-param-region", ("a",)), Mirror(b"mcp-param-zone", ("b", "c")))),
    "every character of a token": (of(a={**REGION, "x-mcp-header": "!#$%&'*+-.^_`|~09aZ"}),
                                   (Mirror(b"mcp-param-!#$%&'*+-.^_`|~09az", ("a",)),)),
    "a property of that name": (of(**{"x-mcp-header": {"type": "string"}}), ()),
    "an annotated property of that name": (of(**{"x-mcp-header": REGION}),
                                           (Mirror(b"mcp-param-region", ("x-mcp-header",)),)),
    "properties called like keywords": (of(items=REGION, properties={**REGION, "x-mcp-header": "P"}),
                                        (Mirror(b"mcp-param-region", ("items",)),
                                         Mirror(b"mcp-param-p", ("properties",)))),
    "that name in data": (of(a={"type": "object", "default": REGION, "const": REGION, "enum": [REGION],
                                "examples": [REGION], "x-other": REGION}), ()),
}  # fmt: skip


@pytest.mark.parametrize(("schema", "wanted"), VALID.values(), ids=VALID)
def test_an_annotation_names_a_header_and_the_way_to_its_argument(schema: object, wanted: Mirrors) -> None:
    assert read(schema) == wanted


ELSEWHERE = {
    **{keyword: {keyword: REGION} for keyword in
       ("items", "contains", "additionalProperties", "propertyNames", "unevaluatedItems", "unevaluatedProperties",
        "additionalItems", "contentSchema", "not", "if", "then", "else")},
    **{f"{keyword}, an array": {keyword: [{}, REGION]} for keyword in
       ("items", "prefixItems", "allOf", "anyOf", "oneOf")},
    **{f"{keyword}, by name": {keyword: {"x": REGION}} for keyword in
       ("$defs", "definitions", "patternProperties", "dependentSchemas", "dependencies")},
}  # fmt: skip


@pytest.mark.parametrize("schema", ELSEWHERE.values(), ids=ELSEWHERE)
def test_an_annotation_that_is_reached_otherwise_voids_the_tools_annotations(schema: Schema) -> None:
    assert isinstance(read({**of(a=REGION), **schema}), Invalid)
    assert isinstance(read(of(a=schema)), Invalid)
    assert isinstance(read({"anyOf": [of(a=REGION)]}), Invalid)


VOID: dict[str, object] = {
    "on the whole": {**REGION, "properties": {}},
    "empty": of(a={**REGION, "x-mcp-header": ""}),
    "with a space": of(a={**REGION, "x-mcp-header": "My Region"}),
    "with a colon": of(a={**REGION, "x-mcp-header": "Region:Primary"}),
    "outside of ASCII": of(a={**REGION, "x-mcp-header": "Région"}),
    "with a tab": of(a={**REGION, "x-mcp-header": "Region\t1"}),
    "with a line break": of(a={**REGION, "x-mcp-header": "Region\r\nX: y"}),
    "with a line break at its end": of(a={**REGION, "x-mcp-header": "Region\n"}),
    "no text": of(a={**REGION, "x-mcp-header": 1}),
    "null": of(a={**REGION, "x-mcp-header": None}),
    "an object": of(a={**REGION, "x-mcp-header": {}}),
    "twice": of(a=REGION, b=REGION),
    "twice in other case": of(a=REGION, b=of(c={**REGION, "x-mcp-header": "REGION"})),
    **{f"on the type {kind}": of(a={"type": kind, "x-mcp-header": "A"})
       for kind in ("number", "object", "array", "null", "String", ["string", "null"], ["string"], None, {})},
    "on no type": of(a={"x-mcp-header": "A"}),
}  # fmt: skip


@pytest.mark.parametrize("schema", VOID.values(), ids=VOID)
def test_an_annotation_against_the_rules_voids_the_tools_annotations(schema: object) -> None:
    assert isinstance(read(schema), Invalid)


def test_an_annotation_is_found_however_it_is_spelled() -> None:
    text = b'{"tools":[{"name":"one","inputSchema":{"properties":{"a":{"type":"string","\\u0078-mcp-header":"R"}}}}]}'
    assert mirrors(Raw(text)) == {"one": (Mirror(b"mcp-param-r", ("a",)),)}


def test_one_tool_is_not_judged_by_another() -> None:
    tools = listed(
        {"name": "void", "inputSchema": of(a={**REGION, "type": "number"})},
        {"name": "good", "inputSchema": of(a=REGION)},
        {"name": "plain", "inputSchema": {"type": "object"}},
        {"name": "bare"},
        {"inputSchema": of(a=REGION)},
        {"name": 5},
        "no tool",
        None,
    )
    found = mirrors(tools)
    assert isinstance(found.pop("void"), Invalid)
    assert found == {"good": (Mirror(b"mcp-param-region", ("a",)),), "plain": (), "bare": ()}


@pytest.mark.parametrize("result", [b"{}", b"[]", b"null", b'{"tools":null}', b'{"tools":{}}', b'"tools"', b"nonsense"])
def test_a_result_without_tools_has_none(result: bytes) -> None:
    assert mirrors(Raw(result)) == {}


@pytest.mark.parametrize("depth", [500, 900, 100_000])
def test_a_schema_that_is_too_deep_to_be_read_annotates_nothing(depth: int) -> None:
    deep = b'{"not":' * depth + b'{"x-mcp-header":"A"}' + b"}" * depth
    found = mirrors(Raw(b'{"tools":[{"name":"one","inputSchema":%b}]}' % deep))
    assert isinstance(found.get("one", Invalid("not read")), Invalid)


def test_a_schema_with_a_number_that_nobody_can_hold_is_void() -> None:
    text = b'{"properties":{"a":{"type":"integer","x-mcp-header":"A","maximum":1e999}}}'
    assert isinstance(mirrors(Raw(b'{"tools":[{"name":"one","inputSchema":%b}]}' % text))["one"], Invalid)


def test_a_deep_schema_is_read_to_its_end() -> None:
    schema: object = REGION
    for _ in range(300):
        schema = of(a=schema)
    annotated = read(schema)
    assert annotated == (Mirror(b"mcp-param-region", ("a",) * 300),)
    check_mirrors(annotated, raw({"a": {"a": 1}}), {})
    with pytest.raises(HeaderMismatch):
        check_mirrors(annotated, raw({"a": {"a": 1}}), {b"mcp-param-region": b"x"})


def test_a_schema_that_refers_to_itself_is_read_once() -> None:
    schema = {**of(a={"$ref": "#"}, b=REGION), "$ref": "#/$defs/x", "$defs": {"x": {"$ref": "#/$defs/x"}}}
    assert read(schema) == (Mirror(b"mcp-param-region", ("b",)),)


KEYWORDS = ["properties", "items", "anyOf", "$defs", "type", "x-mcp-header", "default", "a", "b"]
SCALARS = st.none() | st.booleans() | st.integers() | st.sampled_from(["string", "integer", "A", "b", ""])
JSON = st.recursive(
    SCALARS,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from(KEYWORDS), inner, max_size=4),
    max_leaves=25,
)


@given(JSON)
def test_any_schema_is_read(schema: object) -> None:
    annotated = read(schema)
    assert isinstance(annotated, Invalid) or len({mirror.header for mirror in annotated}) == len(annotated)


@given(JSON, JSON)
def test_any_arguments_are_judged_by_any_schema(schema: object, arguments: object) -> None:
    annotated = read(schema)
    judged = as_judged(annotated, raw(arguments))
    assert json.loads(bytes(judged)) == arguments
    try:
        check_mirrors(annotated, raw(arguments), {})
    except HeaderMismatch:
        assert isinstance(arguments, dict)


# What a call says.

TEXT: Mirrors = (Mirror(b"mcp-param-a", ("a",)),)
NUMBER: Mirrors = (Mirror(b"mcp-param-a", ("a",), is_integer=True),)
BELOW: Mirrors = (Mirror(b"mcp-param-a", ("o", "a")),)


def said(value: bytes) -> Headers:
    return {b"mcp-param-a": value, b"mcp-param-unknown": b"=?base64?!?=", b"mcp-name": b"one"}


EQUAL = {
    "text": (TEXT, '{"a":"us-west1"}', b"us-west1"),
    "text with space around it": (TEXT, '{"a":"us-west1"}', b"  us-west1\t"),
    "no text": (TEXT, '{"a":""}', b""),
    "text in Base64": (TEXT, '{"a":"Hello"}', b"=?base64?SGVsbG8=?="),
    "text that looks like Base64": (TEXT, '{"a":"SGVsbG8="}', b"SGVsbG8="),
    "text that lacks the suffix": (TEXT, '{"a":"=?base64?SGVsbG8="}', b"=?base64?SGVsbG8="),
    "escaped text": (TEXT, '{"a":"\\u0041"}', b"A"),
    "true": (TEXT, '{"a":true}', b"true"),
    "false": (TEXT, '{"a":false}', b"false"),
    "a whole number": (NUMBER, '{"a":42}', b"42"),
    "a negative number": (NUMBER, '{"a":-7}', b"-7"),
    "with a point in the header": (NUMBER, '{"a":42}', b"42.0"),
    "with a point in the body": (NUMBER, '{"a":42.0}', b"42"),
    "with an exponent in the body": (NUMBER, '{"a":4.2e1}', b"42"),
    "zero below zero": (NUMBER, '{"a":-0}', b"0"),
    "a number in Base64": (NUMBER, '{"a":42}', b"=?base64?NDI=?="),
    "the greatest number": (NUMBER, '{"a":9007199254740991}', b"9007199254740991"),
    "the least number": (NUMBER, '{"a":-9007199254740991}', b"-9007199254740991"),
    "not a whole number, which the server judges": (NUMBER, '{"a":3.5}', b"3.5"),
    "a small number as it stands": (NUMBER, '{"a":1e-7}', b"1e-7"),
    "text where a number belongs": (NUMBER, '{"a":"42"}', b"42"),
    "a large number where text belongs": (TEXT, '{"a":9007199254740993}', b"9007199254740993"),
    "below": (BELOW, '{"o":{"a":"x"}}', b"x"),
    "written twice": (TEXT, '{"a":"x","a":"y"}', b"y"),
}


@pytest.mark.parametrize(("annotated", "arguments", "value"), EQUAL.values(), ids=EQUAL)
def test_a_header_that_repeats_its_argument_is_accepted(annotated: Mirrors, arguments: str, value: bytes) -> None:
    check_mirrors(annotated, Raw(arguments.encode()), said(value))


DIFFERENT = {
    "other text": (TEXT, '{"a":"us-west1"}', b"us-west2"),
    "text in other case": (TEXT, '{"a":"us"}', b"US"),
    "no text": (TEXT, '{"a":"us"}', b""),
    "Base64 without its padding": (TEXT, '{"a":"Hello"}', b"=?base64?SGVsbG8?="),
    "Base64 with foreign characters": (TEXT, '{"a":"Hello"}', b"=?base64?SGVs!!!bG8=?="),
    "Base64 that is not UTF-8": (TEXT, '{"a":"Hello"}', b"=?base64?//4=?="),
    "an invalid character": (TEXT, '{"a":"a"}', b"a\x00"),
    "text outside of ASCII": (TEXT, '{"a":"é"}', "é".encode()),
    "text that is a number": (TEXT, '{"a":"42"}', b"42.0"),
    "another truth": (TEXT, '{"a":true}', b"false"),
    "truth in capitals": (TEXT, '{"a":true}', b"True"),
    "truth as a number": (TEXT, '{"a":true}', b"1"),
    "another number": (NUMBER, '{"a":42}', b"43"),
    "almost the number": (NUMBER, '{"a":42}', b"42.00000000000000000001"),
    "a number with a sign": (NUMBER, '{"a":42}', b"+42"),
    "a number with a zero before it": (NUMBER, '{"a":42}', b"042"),
    "a number with an exponent": (NUMBER, '{"a":42}', b"4.2e1"),
    "a number in other digits": (NUMBER, '{"a":42}', b"=?base64?2aTZog==?="),
    "a number with an underscore": (NUMBER, '{"a":42}', b"4_2"),
    "a number with space in Base64": (NUMBER, '{"a":42}', b"=?base64?IDQy?="),
    "a number too great": (NUMBER, '{"a":9007199254740992}', b"9007199254740992"),
    "a number too small": (NUMBER, '{"a":-9007199254740992}', b"-9007199254740992"),
    "a number far too great": (NUMBER, '{"a":1e999}', b"1e999"),
    "a number beyond all": (NUMBER, '{"a":1e99999999999999999999}', b"1e99999999999999999999"),
    "a number of too many digits": (NUMBER, f'{{"a":{"1" * 9999}}}', b"1" * 9999),
    "null": (TEXT, '{"a":null}', b"null"),
    "no argument": (TEXT, "{}", b"x"),
    "no argument, and no value": (TEXT, "{}", b""),
    "an argument in other case": (TEXT, '{"A":"x"}', b"x"),
    "an argument in another place": (BELOW, '{"a":"x"}', b"x"),
    "an argument with a dot": (BELOW, '{"o.a":"x"}', b"x"),
    "an argument below text": (BELOW, '{"o":"x"}', b"x"),
    "an array": (TEXT, '{"a":["x"]}', b'["x"]'),
    "an object": (TEXT, '{"a":{}}', b"{}"),
    "arguments that are no object": (TEXT, '["a"]', b"x"),
    "written twice": (TEXT, '{"a":"x","a":"y"}', b"x"),
}


@pytest.mark.parametrize(("annotated", "arguments", "value"), DIFFERENT.values(), ids=DIFFERENT)
def test_a_header_that_says_something_else_is_refused(annotated: Mirrors, arguments: str, value: bytes) -> None:
    with pytest.raises(HeaderMismatch):
        check_mirrors(annotated, Raw(arguments.encode()), said(value))


@pytest.mark.parametrize("value", ['"x"', '""', "true", "false", "0", "42", "3.5", "9007199254740992"])
def test_a_value_without_its_header_is_refused(value: str) -> None:
    for annotated, arguments in ((TEXT, '{"a":%s}'), (NUMBER, '{"a":%s}'), (BELOW, '{"o":{"a":%s}}')):
        with pytest.raises(HeaderMismatch, match="Mcp-Param-A must be there"):
            check_mirrors(annotated, Raw((arguments % value).encode()), {b"mcp-param-b": b"x"})


@pytest.mark.parametrize("arguments", ["{}", "null", "[]", '{"a":null}', '{"a":[1]}', '{"a":{"b":1}}', '{"b":1}'])
def test_without_a_value_that_a_header_could_say_none_is_expected(arguments: str) -> None:
    check_mirrors(TEXT, Raw(arguments.encode()), {})
    check_mirrors(BELOW, Raw(arguments.encode()), {})


def test_without_arguments_no_header_is_expected() -> None:
    asked = call(b'{"name":"one"}')
    assert bytes(check_call({"one": TEXT}, asked, {}).params or b"") == b'{"name":"one"}'
    with pytest.raises(HeaderMismatch):
        check_call({"one": TEXT}, asked, said(b"x"))


def test_each_header_of_several_is_judged() -> None:
    both: Mirrors = (*TEXT, Mirror(b"mcp-param-b", ("o", "b")), Mirror(b"mcp-param-c", ("o", "c")))
    arguments = raw({"a": "x", "o": {"b": True, "c": "z"}})
    good = {b"mcp-param-a": b"x", b"mcp-param-b": b"true", b"mcp-param-c": b"z"}
    check_mirrors(both, arguments, good)
    for name in good:
        with pytest.raises(HeaderMismatch):
            check_mirrors(both, arguments, {**good, name: b"y"})


def test_of_a_tool_with_void_annotations_nothing_is_judged() -> None:
    check_mirrors(Invalid("void"), raw({"a": "x"}), said(b"y\x00"))
    check_mirrors((), raw({"a": "x"}), said(b"y\x00"))


def test_no_value_of_a_client_is_in_what_it_is_told() -> None:
    with pytest.raises(HeaderMismatch) as refused:
        check_mirrors(TEXT, raw({"a": "secret-1"}), said(b"secret-2"))
    assert "secret" not in refused.value.message


@given(st.text(st.characters(exclude_categories=["Cs"])))
def test_any_text_is_repeated_by_its_base64_and_by_no_other(text: str) -> None:
    check_mirrors(TEXT, raw({"a": text}), said(b"=?base64?%b?=" % b64encode(text.encode())))
    with pytest.raises(HeaderMismatch):
        check_mirrors(TEXT, raw({"a": text + "x"}), said(b"=?base64?%b?=" % b64encode(text.encode())))


@given(st.integers(-(2**54), 2**54), st.integers(-2, 2))
def test_integers_are_compared_by_value_where_no_reader_rounds_them(number: int, off: int) -> None:
    for text in (f"{number + off}", f"{number + off}.0"):
        try:
            check_mirrors(NUMBER, raw({"a": number}), said(text.encode()))
        except HeaderMismatch:
            assert off != 0 or abs(number) >= 2**53
        else:
            assert off == 0
            assert abs(number) < 2**53


# What goes on.


def test_of_an_argument_that_is_there_twice_goes_on_the_one_that_was_judged() -> None:
    arguments = Raw(b'{"a":"x", "n": 1.50, "a":"y","o":{"a":1,"a" :"z"},"o":{"a":2,"a":"w", "k":[ 1 ]}}')
    judged = as_judged((*TEXT, *BELOW), arguments)
    assert bytes(judged) == b'{"a":"y","n":1.50,"o":{"a":"w","k":[ 1 ]}}'


@pytest.mark.parametrize("annotated", [Invalid("void"), ()])
def test_where_nothing_was_judged_the_arguments_go_on_as_they_are(annotated: Mirrors) -> None:
    arguments = Raw(b'{"a":"x","a":"y"}')
    assert as_judged(annotated, arguments) is arguments


CARRIED = b'{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{}}'


def call(params: bytes) -> Admitted:
    """As it was admitted."""
    fields = msgspec.json.decode(params, type=dict[str, Raw])
    meta, target = read_meta({"_meta": Raw(CARRIED)}), msgspec.json.decode(fields["name"], type=str)
    return Admitted("7", "tools/call", Raw(params), fields=fields, meta=meta, target=target)


def test_a_call_is_judged_by_its_tool_and_goes_on_as_it_was_judged() -> None:
    tools = {"one": TEXT, "two": Invalid("void")}
    asked = call(b'{"name":"one","arguments":{"a":"x","a":"y"},"_meta":{"k": 1}}')
    judged = check_call(tools, asked, said(b"y"))
    assert (judged.id, judged.method) == ("7", "tools/call")
    assert bytes(judged.params or b"") == b'{"name":"one","arguments":{"a":"y"},"_meta":{"k": 1}}'
    with pytest.raises(HeaderMismatch):
        check_call(tools, asked, said(b"x"))


@pytest.mark.parametrize(
    "params",
    [
        b'{"name":"two","arguments":{"a":"x"}}',
        b'{"name":"unknown","arguments":{"a":"x"}}',
        b'{"name":"one","arguments":null}',
    ],
)
def test_a_call_of_a_tool_that_wants_no_header_goes_on_as_it_is(params: bytes) -> None:
    asked = call(params)
    assert check_call({"one": TEXT, "two": Invalid("void")}, asked, {}) is asked
