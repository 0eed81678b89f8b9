"""A file of static tokens that changes while it is used."""

import json
import os
from pathlib import Path

import pytest

from app.auth.tokens import Entry, StaticTokens, digest, hash_of
from app.auth.tokens_file import TokensFile


def read(path: Path) -> list[Entry]:
    return [Entry(name, hash_of(token)) for name, token in json.loads(path.read_text()).items()]


@pytest.fixture
def path(tmp_path: Path) -> Path:
    path = tmp_path / "tokens.json"
    path.write_text('{"one": "t1", "two": "t2"}')
    return path


@pytest.fixture
def tokens() -> StaticTokens:
    return StaticTokens([Entry("fixed", hash_of("t0"))])


@pytest.fixture
def file(path: Path, tokens: StaticTokens) -> TokensFile:
    file = TokensFile(path, read, [Entry("fixed", hash_of("t0"))], tokens)
    file.look()
    return file


def let_in(tokens: StaticTokens) -> list[str]:
    return [token for token in ("t0", "t1", "t2", "t3") if tokens.find(digest(token)) is not None]


def test_its_tokens_are_let_in_beside_the_fixed_ones(file: TokensFile, tokens: StaticTokens) -> None:
    assert let_in(tokens) == ["t0", "t1", "t2"]


@pytest.mark.parametrize("way", ["written over", "replaced"])
def test_a_change_counts_at_the_next_look(file: TokensFile, tokens: StaticTokens, path: Path, way: str) -> None:
    one, two = tokens.find(digest("t1")), tokens.find(digest("t2"))
    assert one is not None
    assert two is not None
    if way == "replaced":
        path.with_suffix(".new").write_text('{"two": "t2", "three": "t3"}')
        path.with_suffix(".new").rename(path)
    else:
        path.write_text('{"two": "t2", "three": "t3"}')
    file.look()
    assert let_in(tokens) == ["t0", "t2", "t3"]
    assert (one.term.how, two.term.how) == ("revoked", None)
    assert tokens.find(digest("t2")) is two


def test_a_second_change_of_the_same_size_within_one_tick_of_the_clock_is_seen_too(
    file: TokensFile, tokens: StaticTokens, path: Path
) -> None:
    state = path.stat()
    path.write_text('{"one": "t1", "two": "t3"}')
    os.utime(path, ns=(state.st_atime_ns, state.st_mtime_ns))
    file.look()
    assert let_in(tokens) == ["t0", "t1", "t3"]


def test_a_file_that_has_not_changed_for_a_while_is_not_read_again(path: Path, tokens: StaticTokens) -> None:
    os.utime(path, (1000, 1000))
    count = 0

    def counting(path: Path) -> list[Entry]:
        nonlocal count
        count += 1
        return read(path)

    file = TokensFile(path, counting, [], tokens)
    for _ in range(5):
        file.look()
    assert count == 1


def test_a_file_that_is_gone_lets_nobody_in(file: TokensFile, tokens: StaticTokens, path: Path) -> None:
    path.unlink()
    file.look()
    assert let_in(tokens) == ["t0"]


def test_a_file_that_is_broken_changes_nothing_until_it_is_mended(
    file: TokensFile, tokens: StaticTokens, path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    path.write_text('{"one": "t1", ')
    file.look()
    file.look()
    assert let_in(tokens) == ["t0", "t1", "t2"]
    assert [record.getMessage() for record in caplog.records] == [
        "the tokens file cannot be read, and those before it stay"
    ]
    path.write_text('{"one": "t1"}')
    file.look()
    assert let_in(tokens) == ["t0", "t1"]


def test_a_token_with_other_rights_is_another(path: Path, tokens: StaticTokens) -> None:
    tokens.replace([Entry("a", hash_of("t1"), frozenset({"read"}))])
    before = tokens.find(digest("t1"))
    assert before is not None
    tokens.replace([Entry("a", hash_of("t1"), frozenset())])
    after = tokens.find(digest("t1"))
    assert after is not None
    assert (before.term.how, after.term.how, after.scopes) == ("revoked", None, frozenset())
