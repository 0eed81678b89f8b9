"""What things are called in public: by names that model APIs accept, each of which means one thing."""

import os
import re
import subprocess
import sys

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from app.core.public_names import is_public, prefixed
from tests.core.inventories import alike_names, alike_servers, names

LEGAL = re.compile(r"[A-Za-z0-9_-]{1,64}")

PUBLIC = {
    # As it is, where that can be read apart again.
    ("time", "get_current_time"): "time__get_current_time",
    ("docker", "list-containers"): "docker__list-containers",
    ("github", "create_repository"): "github__create_repository",
    ("a", "b__c"): "a__b__c",
    ("a", "_b"): "a___b",
    # What is not legal is written with `_`, and told apart by what follows.
    ("files", "docs/read.txt"): "files__docs_read_txt_9rvfj5yaqa",
    ("files", "docs read.txt"): "files__docs_read_txt_727mntgkgg",
    ("my.server", "search"): "my_server__search_5ab5ihmclm",
    ("my_server", "search"): "my_server__search",
    ("maps", "查询天气"): "maps_1ixta747cy",
    ("maps", "🗺️"): "maps_9xd2m7ich7",
    ("time", ""): "time_0mdpfknprg",
    ("...", "   "): "x_7gwuuaca5b",
    # What could be read in two ways.
    ("a__b", "c"): "a_b__c_7jizdan42h",
    ("a_", "b"): "a__b_2pu6rhyjpr",
    # What is too long: the server's part is cut to 20 characters, both to 53.
    ("git", "x" * 59): "git__" + "x" * 59,
    ("git", "x" * 80): "git__" + "x" * 48 + "_432vu56wdr",
    ("s" * 64, "tool"): "s" * 20 + "__tool_2h4g6h4ugq",
}  # fmt: skip


@pytest.mark.parametrize("name", PUBLIC, ids=str)
def test_a_server_and_its_own_name_make_a_public_name(name: tuple[str, str]) -> None:
    assert prefixed(*name) == PUBLIC[name]


def test_a_name_that_looks_shortened_is_no_other_s() -> None:
    shortened = prefixed("files", "docs/read.txt").removeprefix("files__")
    assert prefixed("files", shortened) == "files__docs_read_txt_9rvfj5yaqa_6wrwp5q4xq"


@given(names, names)
@example(("a", "b/c"), ("a", "b c"))
@example(("a", "_b"), ("a_", "b"))
@example(("a.b", "c"), ("a_b", "c"))
@example(("a", "b__c"), ("a__b", "c"))
def test_two_things_never_have_one_name(one: tuple[str, str], other: tuple[str, str]) -> None:
    assert (prefixed(*one) == prefixed(*other)) == (one == other)


@given(st.sets(st.tuples(alike_servers, alike_names), max_size=200))
def test_names_that_are_much_alike_stay_apart(things: set[tuple[str, str]]) -> None:
    assert len({prefixed(*thing) for thing in things}) == len(things)


@given(names)
def test_every_public_name_is_one_that_model_apis_accept(name: tuple[str, str]) -> None:
    assert LEGAL.fullmatch(prefixed(*name))


@given(names)
def test_the_server_can_be_read_in_it(name: tuple[str, str]) -> None:
    begin = re.sub(r"[^A-Za-z0-9-]+", "_", name[0]).strip("_")[:20]
    assert prefixed(*name).startswith((f"{name[0]}__", begin))


@given(names)
def test_no_own_name_that_stays_as_it_is_can_be_a_prefixed_one(name: tuple[str, str]) -> None:
    assert not is_public(prefixed(*name))


OWN = {
    "get_current_time": True,
    "查询天气": False,
    "docs/read.txt": False,
    "": False,
    "x" * 64: True,
    "x" * 65: False,
    "time__now": False,
    "read_9rvfj5yaqa": False,
    "create_repository": True,
    "name\n": False,
}


@pytest.mark.parametrize("own", OWN, ids=ascii)
def test_an_own_name_may_stay_where_it_is_legal_and_looks_like_no_prefixed_one(own: str) -> None:
    assert is_public(own) is OWN[own]


@settings(max_examples=1)
@given(st.lists(names, min_size=50, max_size=50))
def test_another_process_gives_the_same_names(things: list[tuple[str, str]]) -> None:
    program = f"from app.core.public_names import prefixed\nprint([prefixed(*name) for name in {things!a}])"
    for seed in ("1", "2"):
        run = subprocess.run(
            [sys.executable, "-c", program],
            env={**os.environ, "PYTHONHASHSEED": seed, "PYTHONPATH": os.pathsep.join(sys.path)},
            capture_output=True,
            text=True,
            timeout=30,
            check=True,
        )
        assert run.stdout.strip() == str([prefixed(*name) for name in things])
