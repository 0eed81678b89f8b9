"""The labelled questions find their tools: floors a little below what `python -m tests.search.measure` says."""

from collections.abc import Iterator

import pytest

from app.search.fts import Fts
from tests.search.measure import Question, documents, places, questions, recall


@pytest.fixture(scope="module")
def ranker() -> Iterator[Fts]:
    ranker = Fts(documents())
    yield ranker
    ranker.close()


@pytest.mark.parametrize(("language", "floor"), [("en", 0.75), ("zh", 0.80)])
def test_most_questions_find_their_tool_among_the_first_five(ranker: Fts, language: str, floor: float) -> None:
    assert recall(places(ranker, [q for q in questions() if q.language == language]), 5) >= floor


def test_also_those_that_nobody_tuned_for(ranker: Fts) -> None:
    assert recall(places(ranker, [q for q in questions() if q.is_held_out]), 5) >= 0.75


def test_there_is_what_a_question_asks_for() -> None:
    known = {document.name for document in documents()}
    asked = questions()
    assert len(asked) == len({q.text for q in asked}) == 100
    assert len(known) >= 1000
    assert all(q.tools and q.tools <= known for q in asked)


@pytest.mark.parametrize(("language", "count"), [("zh", 17), ("en", 33)])
def test_half_of_the_questions_are_held_out(language: str, count: int) -> None:
    def of(is_held_out: bool) -> list[Question]:
        return [q for q in questions() if q.language == language and q.is_held_out == is_held_out]

    assert len(of(True)) == len(of(False)) == count
