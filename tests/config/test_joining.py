# ruff: noqa: E501 - a sentence is compared whole
"""What is said of servers that are one: which of their things are shown, under which names, in which groups."""

from typing import Any

import pytest

from app.config import choosing
from app.config.notes import Note
from app.core.shaping import WHOLE, Change, Choice
from app.core.targets import Pattern, Target
from tests.config.conftest import Complaint, Loading

GIT = {"command": "uvx", "args": ["mcp-server-git"]}
MAIL = {"command": "uvx", "args": ["mcp-server-mail"]}


def both(**git: object) -> dict[str, object]:
    return {"git": {**GIT, **git}, "mail": MAIL}


def tools(**change: object) -> dict[str, object]:
    return {"tools": {"change": change}}


def test_a_servers_own_names_become_what_the_core_knows(loading: Loading) -> None:
    chosen = {
        "allow": ["git_*", "prompts/*"],
        "deny": ["resources/file:*"],
        "change": {"git_log": {"name": "log", "tags": ["x"]}, "prompts/review": {"enabled": False}},
    }
    config = loading(both(tags=["dev", "home"], tools=chosen))
    shaping = choosing.shaping(config.servers)
    assert shaping.choices == (
        Choice(
            (Pattern("git/git_*"), Pattern("git/prompts/*")),
            (Pattern("git/resources/file:*"),),
            {
                Target("git", "tools", "git_log"): Change("log", tags=frozenset({"x"})),
                Target("git", "prompts", "review"): Change(enabled=False),
            },
        ),
    )
    assert shaping.tags == {"git": frozenset({"dev", "home"})}


def test_a_group_chooses_from_what_its_servers_leave(loading: Loading) -> None:
    group = {
        "servers": ["mail", "git"],
        "tools": {"deny": ["mail/send_*"], "change": {"git/log": {"title": "Log", "description": "What was done"}}},
        "tags": ["dev"],
    }
    config = loading(both(tools={"deny": ["reset"]}), {"groups": {"office": group}})
    office = config.viaduct.groups["office"]
    members = choosing.members(office, config.servers)
    shaping = choosing.shaping(members, office)
    assert list(members) == ["mail", "git"]
    assert [choice.deny for choice in shaping.choices] == [(Pattern("git/reset"),), (Pattern("mail/send_*"),)]
    assert shaping.change(Target("git", "tools", "log")) == Change("", "Log", "What was done")
    assert shaping.wanted == (frozenset({"dev"}),)


def test_a_group_of_no_servers_in_particular_has_all(loading: Loading) -> None:
    config = loading(both(), {"groups": {"all": {}}})
    assert list(choosing.members(config.viaduct.groups["all"], config.servers)) == ["git", "mail"]


def test_of_servers_that_nothing_is_said_of_everything_is_shown(loading: Loading) -> None:
    assert choosing.shaping(loading(both()).servers) == WHOLE


@pytest.mark.parametrize(
    ("git", "sentence"),
    [
        ({"tags": ["a b"]}, "mcpServers.git.tags.0 must be one word of A-Z a-z 0-9 . _ and -"),
        ({"tags": "dev"}, "mcpServers.git.tags must be a list"),
        ({"tools": ["log"]}, "mcpServers.git.tools must be an object"),
        ({"tools": {"alow": []}}, "mcpServers.git.tools.alow is not a setting; did you mean mcpServers.git.tools.allow?"),
        ({"tools": {"deny": [""]}}, "mcpServers.git.tools.deny.0 must not be empty"),
        (tools(log={"nam": "x"}), "mcpServers.git.tools.change.log.nam is not a setting; did you mean mcpServers.git.tools.change.log.name?"),
        (tools(log={"name": "a b"}), "mcpServers.git.tools.change.log.name must be 1 to 64 of A-Z a-z 0-9 _ and -, for models know tools by such names only"),
        (tools(log={"title": ""}), "mcpServers.git.tools.change.log.title must not be empty"),
        (tools(**{"git_*": {}}), "mcpServers.git.tools.change: 'git_*' must be one name; patterns belong into allow and deny"),
        (tools(**{"resources/x": {}}), "mcpServers.git.tools.change: 'resources/x' is a resource, and these stay as they are; deny it where it shall go"),
        (tools(**{"prompts/": {}}), "mcpServers.git.tools.change: 'prompts/' names nothing; write git_status or prompts/review"),
        (tools(log={"name": "x"}, status={"name": "x"}), "mcpServers: git/log and git/status are both named 'x'; give one of them another name"),
    ],
)  # fmt: skip
def test_what_is_wrong_with_a_servers_tools_is_one_sentence(
    git: dict[str, object], sentence: str, complaint: Complaint
) -> None:
    assert complaint(both(**git)) == sentence


@pytest.mark.parametrize(
    ("groups", "sentence"),
    [
        ([], "viaduct.groups must be an object"),
        ({"a/b": {}}, "viaduct.groups: 'a/b' cannot be part of a URL; name a group with 1 to 64 of A-Z a-z 0-9 . _ and -"),
        ({"a": {}, "A": {}}, "viaduct.groups: 'a' and 'A' differ only in case; rename one"),
        ({"a": {"server": ["git"]}}, "viaduct.groups.a.server is not a setting; did you mean viaduct.groups.a.servers?"),
        ({"tools": {"tags": [], "mod": "list"}}, "viaduct.groups.tools.mod is not a setting; did you mean viaduct.groups.tools.mode?"),
        ({"a": {"servers": []}}, "viaduct.groups.a.servers must not be empty"),
        ({"a": {"servers": ["git", "mial"]}}, "viaduct.groups.a.servers: there is no server 'mial'; did you mean 'mail'?"),
        ({"a": {"servers": ["x"]}}, "viaduct.groups.a.servers: there is no server 'x'; there are git, mail"),
        ({"a": {"naming": "prefixed"}}, "viaduct.groups.a.naming must be 'prefix', 'onConflict' or 'none'"),
        ({"a": {"mode": "find"}}, "viaduct.groups.a.mode must be 'list' or 'search'"),
        ({"a": {"tools": {"allow": ["git/"]}}}, "viaduct.groups.a.tools.allow.0 must be like time, git/git_status, git/prompts/*, fs/resources/* or *"),
        ({"a": tools(**{"gti/log": {}})}, "viaduct.groups.a.tools.change: there is no server 'gti'; did you mean 'git'?"),
        ({"a": tools(git={})}, "viaduct.groups.a.tools.change: 'git' names nothing; write git/git_status or git/prompts/review"),
        ({"a": tools(**{"git/*": {}})}, "viaduct.groups.a.tools.change: 'git/*' must be one name; patterns belong into allow and deny"),
        (
            {"a": tools(**{"git/log": {"name": "post"}, "mail/prompts/send": {"name": "post"}, "mail/send": {"name": "post"}})},
            "viaduct.groups.a: git/log and mail/send are both named 'post'; give one of them another name",
        ),
    ],
)  # fmt: skip
def test_what_is_wrong_with_a_group_is_one_sentence(groups: object, sentence: str, complaint: Complaint) -> None:
    assert complaint(both(), {"groups": groups}) == sentence


def test_a_group_may_take_the_name_that_it_does_not_show_elsewhere(loading: Loading) -> None:
    renamed = tools(**{"git/log": {"name": "post"}, "mail/send": {"name": "post"}})
    denied = {**renamed["tools"], "deny": ["git/log"]}  # type: ignore[dict-item]
    loading(both(), {"groups": {"mail": {"servers": ["mail"], **renamed}, "quiet": {"tools": denied}}})


@pytest.mark.parametrize(
    ("catalog", "sentence"),
    [
        ({"read": "never"}, "viaduct.catalog.read must be 'start' or 'use'"),
        ({"pagesize": 1}, "viaduct.catalog.pagesize is not a setting; did you mean viaduct.catalog.pageSize?"),
        ({"listTimeout": 0}, "viaduct.catalog.listTimeout must be greater than 0"),
    ],
)
def test_what_is_wrong_with_the_catalog_is_one_sentence(catalog: object, sentence: str, complaint: Complaint) -> None:
    assert complaint(viaduct={"catalog": catalog}) == sentence


def warned(event: str, **fields: Any) -> tuple[Note, ...]:
    return (Note(event, fields, is_warning=True),)


def test_a_server_that_names_itself_in_its_own_patterns_is_noticed(loading: Loading) -> None:
    config = loading(both(tools={"deny": ["git/reset", "push"]}))
    event = "a server's own tools are named without it: leave its name out"
    assert config.notes == warned(event, server="git", patterns=["git/reset"])


def test_patterns_of_a_group_that_fit_none_of_its_servers_are_noticed(loading: Loading) -> None:
    group = {"servers": ["git"], "tools": {"allow": ["mail/*", "g*/log"], "change": {"mail/send": {"title": "S"}}}}
    config = loading(both(), {"groups": {"dev": group}})
    event = "a pattern of a group fits no server of it"
    assert config.notes == warned(event, group="dev", patterns=["mail/*", "mail/send"])


def test_tags_of_a_group_that_nothing_has_are_noticed(loading: Loading) -> None:
    config = loading(both(tags=["dev"]), {"groups": {"g": {"tags": ["dev", "home"]}}})
    assert config.notes == warned("a group wants tags that nothing in it has", group="g", tags=["home"])


def test_a_disabled_server_may_stay_in_its_groups(loading: Loading) -> None:
    servers = {"git": GIT, "mail": {**MAIL, "disabled": True}}
    groups = {"both": {"servers": ["mail", "git"]}, "post": {"servers": ["mail"]}}
    config = loading(servers, {"groups": groups})
    assert list(choosing.members(config.viaduct.groups["both"], config.servers)) == ["git"]
    assert config.notes[1:] == warned("a group is left out: all of its servers are disabled", group="post")
