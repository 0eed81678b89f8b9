"""The reference says what the code does: each setting, option, fault, refusal and path is in it, and nothing else."""

import ast
import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import get_args, get_origin

import click
import pytest
from prometheus_client import ProcessCollector
from pydantic import BaseModel

from app.cli.commands import cli
from app.config import overrides, servers
from app.config.tree import Server, Viaduct
from app.edge import refusals
from app.edge.app import Place, _places
from app.edge.oauth import ResourceServer
from app.gateway.settings import WHOLE_NAME, JointSettings, UpstreamSettings
from app.protocol import faults
from app.protocol.faults import GatewayFault
from app.telemetry.numbers import NUMBERS, TIMES
from app.telemetry.tally import OUTCOMES, SERVER_STATES
from app.upstreams.command import Command

ROOT = Path(__file__).parents[2]
REFERENCE = ROOT / "docs/reference"
PAGES = [ROOT / "README.md", *sorted(ROOT.glob("docs/**/*.md"))]
SOURCES = {path: ast.parse(path.read_text()) for path in sorted(ROOT.glob("app/**/*.py"))}

Row = list[str]


def rows(page: str, first: str) -> Iterator[Row]:
    """The rows of those tables whose first column has this heading, without the marks of code."""
    heading = ""
    for line in (REFERENCE / page).read_text().splitlines():
        cells = [cell.strip().replace("\\|", "|") for cell in re.split(r"(?<!\\)\|", line)[1:-1]]
        if not cells:
            heading = ""
        elif not heading:
            heading = cells[0].strip("`")
        elif heading == first and not set(cells[0]) <= {"-"}:
            yield [cell[1:-1] if re.fullmatch(r"`[^`]*`", cell) else cell for cell in cells]


# Settings.


def settings(model: type[BaseModel], path: str) -> Iterator[tuple[str, str]]:
    """Every field with its default, as the file spells them."""
    for name, field in model.model_fields.items():
        spelled = f"{path}.{field.alias or name}"
        inner = nested(field.annotation)
        if inner is not None and isinstance(field.default, BaseModel):
            yield from settings(inner, spelled)
            continue
        yield spelled, "required" if field.is_required() else json.dumps(field.default)
        if inner is not None:
            mark = "[]" if "tuple" in str(field.annotation) else ".*" if get_origin(field.annotation) is dict else ""
            yield from settings(inner, f"{spelled}{mark}")


def nested(annotation: object) -> type[BaseModel] | None:
    candidates = (annotation, *get_args(annotation))
    return next((each for each in candidates if isinstance(each, type) and issubclass(each, BaseModel)), None)


def test_every_setting_is_documented_with_its_default() -> None:
    in_code = dict([*settings(Server, "mcpServers.*"), *settings(Viaduct, "viaduct")])
    documented = {row[0]: row[1] for row in rows("configuration.md", "setting")}
    assert {key: json.loads(value) if value != "required" else value for key, value in documented.items()} == {
        key: json.loads(value) if value != "required" else value for key, value in in_code.items()
    }


def test_no_setting_is_documented_twice() -> None:
    documented = [row[0] for row in rows("configuration.md", "setting")]
    assert len(documented) == len(set(documented))


def test_every_key_of_other_clients_is_documented() -> None:
    documented = {key for row in rows("configuration.md", "key") for key in re.findall(r"\w+", row[0])}
    assert documented == {*servers.IGNORED, *servers._MEANT_FOR_US, *servers._REMOTE}


class Asked(dict[str, str]):
    """An environment that remembers what was looked up in it."""

    def __init__(self) -> None:
        self.names: set[str] = set()

    def get(self, name: str, default: str | None = None) -> str | None:  # type: ignore[override]
        self.names.add(name)
        return default

    def __contains__(self, name: object) -> bool:
        self.names.add(str(name))
        return False


def test_every_variable_is_documented() -> None:
    environ = Asked()
    overrides.from_environment(environ)
    documented = {name for row in rows("configuration.md", "variable") for name in re.findall(r"\w+", row[0])}
    assert documented == environ.names | {"VIADUCT_CONFIG"}


# Commands.


def section(page: str, title: str) -> str:
    text = (REFERENCE / page).read_text()
    found = re.search(rf"^## {re.escape(title)}$(.*?)(?=^## |\Z)", text, re.DOTALL | re.MULTILINE)
    assert found is not None, f"{page} has no section {title!r}"
    return found[1]


def options_in(text: str) -> set[str]:
    return set(re.findall(r"^\| `(--[a-z-]+)", text, re.MULTILINE))


@pytest.mark.parametrize("name", sorted(cli.commands))
def test_every_option_of_a_command_is_documented(name: str) -> None:
    in_code = {
        option for parameter in cli.commands[name].params if isinstance(parameter, click.Option)
        for option in parameter.opts
    }  # fmt: skip
    text = section("cli.md", f"viaduct {name}")
    documented = options_in(text)
    if "(#serving-options)" in text:
        documented |= options_in(section("cli.md", "Serving options"))
    assert documented == in_code


def test_no_command_is_documented_that_is_not_there() -> None:
    titles = re.findall(r"^## viaduct (\w+)$", (REFERENCE / "cli.md").read_text(), re.MULTILINE)
    assert sorted(titles) == sorted(cli.commands)


# Faults and refusals.


def leaves(fault: type[GatewayFault]) -> Iterator[type[GatewayFault]]:
    children = fault.__subclasses__()
    if not children:
        yield fault
    for child in children:
        yield from leaves(child)


def raised(fault: type[GatewayFault]) -> GatewayFault:
    if fault is faults.UnknownSession:
        return faults.UnknownSession()
    if fault is faults.MissingCapability:
        return faults.MissingCapability("it went wrong", {})
    if fault is faults.UnsupportedRevision:
        return faults.UnsupportedRevision("it went wrong", "", ())
    if fault is faults.InsufficientScope:
        return faults.InsufficientScope("it went wrong", ())
    return fault("it went wrong")


def test_every_fault_is_documented_with_its_code_reason_and_status() -> None:
    in_code = set()
    for fault in leaves(GatewayFault):
        status = refusals.refused(raised(fault))[0] if fault in refusals._STATUS else "-"
        retryable = "yes" if fault.retryable else "no"
        in_code.add((str(fault.code), fault.__name__, fault.reason, str(status), retryable))
    assert {tuple(row[:5]) for row in rows("errors.md", "code")} == in_code


def calls() -> Iterator[ast.Call]:
    for tree in SOURCES.values():
        yield from (node for node in ast.walk(tree) if isinstance(node, ast.Call))


def constants(nodes: list[ast.expr]) -> list[object]:
    return [node.value if isinstance(node, ast.Constant) else None for node in nodes]


def test_every_refusal_is_documented_with_its_status() -> None:
    in_code = set()
    for call in calls():
        if isinstance(call.func, ast.Name) and call.func.id == "Refusal":
            status, reason = constants(call.args[:2])
            in_code |= {(str(status), reason)} if isinstance(reason, str) else set()
    assert {tuple(row[:2]) for row in rows("errors.md", "HTTP")} == in_code


def test_every_more_exact_reason_is_documented() -> None:
    named = {keyword.value for call in calls() for keyword in call.keywords if keyword.arg == "reason"}
    closed = {
        call.args[0] for call in calls()
        if isinstance(call.func, ast.Attribute) and call.func.attr == "close" and call.args
    }  # fmt: skip
    in_code = {reason for reason in constants([*named, *closed]) if isinstance(reason, str)}
    documented = {row[0] for row in rows("errors.md", "reason")} | {fault.reason for fault in leaves(GatewayFault)}
    assert in_code <= documented


def test_every_documented_reason_is_in_the_code() -> None:
    in_code = {node.value for tree in SOURCES.values() for node in ast.walk(tree) if isinstance(node, ast.Constant)}
    assert {row[0] for row in rows("errors.md", "reason")} <= in_code


def test_more_exact_reasons_stand_under_a_code_that_exists() -> None:
    codes = {str(fault.code) for fault in leaves(GatewayFault)}
    assert {row[1] for row in rows("errors.md", "reason")} <= codes


# Paths.


def joint(name: str) -> UpstreamSettings:
    return UpstreamSettings(name, Command(()), joint=JointSettings(("{name}",)))


def served(server: ResourceServer | None = None) -> dict[str, Place]:
    upstreams = (UpstreamSettings("{name}", Command(("true",))),)
    return _places(upstreams, "", server=server, joints=(joint(WHOLE_NAME), joint("/groups/{name}")))


def test_every_path_is_documented_with_its_methods() -> None:
    documented = {row[0]: row[1].encode() for row in rows("http.md", "path")}
    assert documented == {path: place.allow for path, place in served().items() if not path.endswith("/")}


def test_every_document_is_documented_with_its_methods() -> None:
    places = served(ResourceServer("https://mcp.example.com", ("https://idp.example.com",)))
    documented = {row[0]: row[1].encode() for row in rows("http.md", "document")}
    assert documented
    assert documented.items() <= {path: place.allow for path, place in places.items() if place.document}.items()


def test_every_path_is_served_with_a_trailing_slash_too() -> None:
    places = served()
    for path in documented_paths():
        assert places[f"{path}/"] == places[path]


def documented_paths() -> list[str]:
    paths = [row[0] for row in rows("http.md", "path")]
    assert paths
    return paths


# Metrics.


def metrics_in_code() -> set[tuple[str, str, str]]:
    ours = {(number.name, number.kind, number.labels) for number in NUMBERS}
    ours |= {(time.name, "histogram", time.labels) for time in TIMES}
    of_process = {
        (family.name + ("_total" if family.type == "counter" else ""), family.type, ())
        for family in ProcessCollector(registry=None).collect()
    }
    assert len(of_process) > 4
    return {(name, kind, ", ".join(f"`{label}`" for label in labels)) for name, kind, labels in ours | of_process}


def test_every_metric_is_documented_with_its_type_and_labels() -> None:
    documented = [
        (name, kind, f"`{labels}`" if labels and "`" not in labels else labels)
        for name, kind, labels, *_ in rows("metrics.md", "metric")
    ]
    assert set(documented) == metrics_in_code()
    assert len(documented) == len(set(documented))


def test_every_outcome_and_state_is_documented() -> None:
    assert {row[0] for row in rows("metrics.md", "outcome")} == OUTCOMES
    assert {row[0] for row in rows("metrics.md", "state")} == set(SERVER_STATES)


def test_every_way_to_show_metrics_is_documented() -> None:
    documented = [row[0] for row in rows("metrics.md", "viaduct.metrics")]
    assert documented == list(get_args(Viaduct.model_fields["metrics"].annotation))


# Links.


def anchors(page: Path) -> set[str]:
    titles = re.findall(r"^#+ (.*)$", page.read_text(), re.MULTILINE)
    return {"", *(re.sub(r"[^\w -]", "", title.lower()).replace(" ", "-") for title in titles)}


def broken(page: Path) -> Iterator[str]:
    text = re.sub(r"^```.*?^```", "", page.read_text(), flags=re.DOTALL | re.MULTILINE)
    for link in re.findall(r"\]\(([^)\s]+)\)", text):
        target, _, anchor = link.partition("#")
        path = (page.parent / target).resolve() if target else page
        if re.match(r"[a-z]+:", link):
            continue
        if not path.exists() or (anchor and anchor not in anchors(path)):
            yield link


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_every_link_leads_somewhere(page: Path) -> None:
    assert list(broken(page)) == []


def test_every_page_is_reached_from_the_index() -> None:
    index = (ROOT / "docs/README.md").read_text()
    linked = {(ROOT / "docs" / link.split("#")[0]).resolve() for link in re.findall(r"\]\(([^)\s]+)\)", index)}
    pages = {page for page in PAGES if page.is_relative_to(ROOT / "docs") and page.parent.name != "adr"}
    assert pages - {ROOT / "docs/README.md"} <= linked
