"""Which documents are nearest to a question."""

import sqlite3
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor

import pytest
from hypothesis import given
from hypothesis import strategies as some

from app.core.ranking import Document, Ranker
from app.search.fts import Fts, NoFullText

FILES = Document("disk__delete_file", "", "Delete a file or a directory.", "disk", "path Where it is")
WEATHER = Document("sky__forecast", "Weather forecast", "What the weather will be like.", "sky", "city\ndays")
MAIL = Document("post__sendMail", "", "Send an email to somebody.", "post", "to\nsubject\nbody")
TICKETS = Document("rail__query-tickets", "", "查询两站之间的列车和余票", "rail", "from 出发站\nto 到达站")
ALL = (FILES, WEATHER, MAIL, TICKETS)


@pytest.fixture(scope="module")
def ranker() -> Iterator[Ranker]:
    ranker = Fts(ALL)
    yield ranker
    ranker.close()


def ranked(query: str, *documents: Document, limit: int = 5) -> list[str]:
    ranker = Fts(documents)
    try:
        return ranker.rank(query, limit)
    finally:
        ranker.close()


@pytest.mark.parametrize(
    ("query", "nearest"),
    [
        ("delete file", FILES),
        ("deleting some files", FILES),
        ("sendmail", MAIL),
        ("余票", TICKETS),
        ("the city I am in", WEATHER),
    ],
)
def test_what_has_the_words_of_a_question_is_nearest(ranker: Ranker, query: str, nearest: Document) -> None:
    assert ranker.rank(query, 1) == [nearest.name]


@pytest.mark.parametrize(
    ("query", "nearest"),
    [
        ("erase it from the folder", FILES),
        ("把这个文件夹删掉", FILES),
        ("明天下雨吗", WEATHER),
        ("给老王发邮件", MAIL),
        ("a train to Suzhou", TICKETS),
    ],
)
def test_other_words_for_it_find_it_too_in_either_language(ranker: Ranker, query: str, nearest: Document) -> None:
    assert ranker.rank(query, 1) == [nearest.name]


def test_the_word_that_was_said_is_nearer_than_another_for_it() -> None:
    said, meant = Document("a__erase", "", "", "a"), Document("b__delete", "", "", "b")
    filler = [Document(f"c__{letter}", "", letter, "c") for letter in "defgh"]
    assert ranked("erase", meant, said, *filler) == [said.name, meant.name]


def test_a_tool_that_answers_all_of_a_question_is_nearer_than_one_that_repeats_a_part() -> None:
    whole = Document("a__x", "", "calendar of the team", "a")
    part = Document("b__y", "", "calendar calendar calendar", "b")
    filler = [Document(f"c__{n}", "", f"other {n}", "c") for n in range(8)]
    assert ranked("team calendar", part, whole, *filler)[0] == whole.name


def test_a_name_counts_more_than_a_parameter() -> None:
    named, having = Document("a__zip", "", "", "a"), Document("b__other", "", "", "b", "zip")
    filler = [Document(f"c__{n}", "", f"other {n}", "c", "thing") for n in range(8)]
    assert ranked("zip", having, named, *filler) == [named.name, having.name]


def test_equally_near_ones_are_in_the_order_of_their_names() -> None:
    same = [Document(f"{letter}__ping", "", "Ping a host.", "net") for letter in "cab"]
    filler = [Document(f"z__{n}", "", f"other {n}", "z") for n in range(8)]
    assert ranked("ping", *same, *filler) == ["a__ping", "b__ping", "c__ping"]


def test_there_are_no_more_than_were_asked_for(ranker: Ranker) -> None:
    assert len(ranker.rank("file weather mail", 2)) == 2
    assert ranker.rank("file", 0) == ranker.rank("file", -1) == []


@pytest.mark.parametrize("query", ["", "   ", "?!", "xyzzy plugh", "鑫", "the of and", "\x00", '"""'])
def test_a_question_that_says_nothing_finds_nothing(ranker: Ranker, query: str) -> None:
    assert ranker.rank(query, 5) == []


@pytest.mark.parametrize(
    "query",
    [
        'file"',
        'file" OR "mail',
        "file AND NOT",
        "file*",
        "name:file",
        "NEAR(file mail, 2)",
        "^file",
        "-file",
        "(file",
        "file'",
    ],
)
def test_the_syntax_of_the_index_is_only_words(ranker: Ranker, query: str) -> None:
    assert FILES.name in ranker.rank(query, 5)


@given(some.text(max_size=200))
def test_no_question_breaks_it(query: str) -> None:
    found = ranked(query, *ALL)
    assert set(found) <= {document.name for document in ALL}
    assert found == ranked(query, *ALL)


def test_of_a_very_long_question_the_beginning_counts(ranker: Ranker) -> None:
    assert ranker.rank("weather " + "鑫" * 1_000_000 + " file", 5) == [WEATHER.name]


def test_what_a_question_costs_is_bounded() -> None:
    looked_up: list[str] = []
    ranker = Fts(ALL)
    ranker._index.set_trace_callback(looked_up.append)
    ranker.rank("list get find create show change error image search send open file message comment table chart", 5)
    ranker.close()
    assert sum(statement.startswith("SELECT") for statement in looked_up) == 200


def test_without_documents_nothing_is_found() -> None:
    assert ranked("file") == []


def test_it_may_be_made_in_one_thread_and_asked_in_another() -> None:
    with ThreadPoolExecutor(1) as aside:
        ranker = aside.submit(Fts, ALL).result()
    assert ranker.rank("weather", 1) == [WEATHER.name]
    ranker.close()


def test_a_python_whose_sqlite_has_no_full_text_index_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    class Poor(sqlite3.Connection):
        def execute(self, sql: str, *_: object) -> sqlite3.Cursor:
            raise sqlite3.OperationalError("no such module: fts5")

    connect = sqlite3.connect
    monkeypatch.setattr(sqlite3, "connect", lambda path, **kw: connect(path, factory=Poor, **kw))
    with pytest.raises(NoFullText, match=r"has no FTS5"):
        Fts(ALL)
