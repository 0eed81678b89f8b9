"""What `viaduct check` and the banner say of servers that are one."""

import json
from pathlib import Path
from typing import Any

from app.cli.banner import banner
from app.config import load
from app.config.listening import Listen
from tests.cli.test_check import DYING, PAGED, python
from tests.cli.viaduct import viaduct

TWO: dict[str, Any] = {"one": python(PAGED), "two": python(PAGED)}


def written(folder: Path, servers: object, **viaduct_block: object) -> Path:
    path = folder / "viaduct.json"
    path.write_text(json.dumps({"mcpServers": servers, "viaduct": viaduct_block}))
    return path


def checked(path: Path) -> tuple[int, dict[str, Any]]:
    done = viaduct("check", str(path), "--json")
    assert "Traceback" not in done.stderr
    return done.returncode, {each["path"]: each for each in json.loads(done.stdout)["joined"]}


def test_it_tells_what_servers_offer_as_one(tmp_path: Path) -> None:
    groups = {"few": {"servers": ["two"], "tools": {"deny": ["two/b"], "change": {"two/c": {"name": "see"}}}}}
    code, found = checked(written(tmp_path, TWO, groups=groups))
    assert code == 0
    assert found["/mcp"] == {
        "path": "/mcp", "servers": ["one", "two"], "naming": "prefix", "mode": "list",
        "offers": {
            "tools": ["one__a", "one__b", "one__c", "two__a", "two__b", "two__c"], "prompts": ["one__p", "two__p"],
            "resources": [], "templates": [],
        },
        "conflicts": [],
    }  # fmt: skip
    assert found["/groups/few/mcp"]["offers"]["tools"] == ["two__a", "see"]


def test_two_tools_of_one_name_are_named_and_fail_the_check(tmp_path: Path) -> None:
    path = written(tmp_path, {**TWO, "two": python(PAGED, tools={"deny": ["prompts/*", "b"]})}, naming="none")
    code, found = checked(path)
    assert code == 1
    assert found["/mcp"]["conflicts"] == [
        {"list": "tools", "name": name, "servers": ["one", "two"]} for name in ("a", "c")
    ]
    assert found["/servers/two/mcp"]["offers"]["tools"] == ["a", "c"]
    assert found["/servers/two/mcp"]["conflicts"] == []


def test_people_are_told_the_same(tmp_path: Path) -> None:
    done = viaduct("check", str(written(tmp_path, TWO, naming="none", mode="search")))
    assert done.returncode == 1
    assert "as one  /mcp  one, two: 3 tools, 1 prompts, to be found and not listed\n      tools: a, b, c" in done.stdout
    assert "CONFLICT  tools: one and two both have 'a'; rename or deny one" in done.stdout
    assert "CONFLICT  prompts: one and two both have 'p'; rename or deny one" in done.stdout


def test_a_name_that_a_server_has_already_cannot_be_given_to_another_of_its_tools(tmp_path: Path) -> None:
    done = viaduct("check", str(written(tmp_path, {"one": python(PAGED, tools={"change": {"b": {"name": "a"}}})})))
    assert done.returncode == 1
    assert "as one  /servers/one/mcp  one: 2 tools, 1 prompts" in done.stdout
    assert "CONFLICT  tools: one has 'a' twice; rename or deny one" in done.stdout


def test_one_that_fails_is_missing_and_the_others_are_one(tmp_path: Path) -> None:
    code, found = checked(written(tmp_path, {**TWO, "two": python(DYING)}))
    assert code == 1
    assert found["/mcp"]["offers"]["tools"] == ["one__a", "one__b", "one__c"]


def test_of_a_single_server_nothing_is_said(tmp_path: Path) -> None:
    path = str(written(tmp_path, {"one": python(PAGED)}))
    assert "as one" not in viaduct("check", path).stdout
    assert list(json.loads(viaduct("check", path, "--json").stdout)) == ["servers"]


def shown(path: Path) -> str:
    return banner(load(path, {"VIADUCT_TOKEN": "some-token-of-length"}), Listen("127.0.0.1", 81), None)


def test_the_banner_names_the_url_of_all_servers_and_those_of_groups(tmp_path: Path) -> None:
    groups = {"office": {"servers": ["two", "one"]}, "all": {}}
    text = shown(written(tmp_path, TWO, groups=groups))
    base = "http://127.0.0.1:81"
    for block in (
        f"  All of them as one\n    Streamable HTTP  {base}/mcp\n    HTTP+SSE         {base}/sse\n",
        f"  office: two, one as one\n    Streamable HTTP  {base}/groups/office/mcp\n",
        f"    HTTP+SSE         {base}/groups/office/sse\n",
        f"  all: one, two as one\n    Streamable HTTP  {base}/groups/all/mcp\n",
        f"    claude mcp add --transport http viaduct {base}/mcp --header",
    ):
        assert block in text


def test_the_banner_names_no_group_without_servers(tmp_path: Path) -> None:
    servers = {"one": TWO["one"], "two": {**TWO["two"], "disabled": True}}
    text = shown(written(tmp_path, servers, groups={"post": {"servers": ["two"]}}))
    assert "/groups/" not in text
    assert "The only server" in text
